//! `belljar budget`: how much somebody may use.

use belljar_client::{BudgetOf, NewBudget};

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};

/// Set, list and remove budgets (setting needs a key with the scope `admin`)
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Set(Set),
    Ls(Ls),
    Rm(Rm),
}

/// Set how much of something a project, a key or a sandbox may use
///
/// Meters: cpu_micros, wall_millis, memory_mib_seconds, disk_bytes, executions. What was used already counts.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar budget set project:team-a cpu_micros --hard 3600000000
  belljar budget set sandbox:sk3v9m2x8c7p4q6w5z2n executions --soft 80 --hard 100 --kill")]
pub(crate) struct Set {
    /// project:NAME, key:ID or sandbox:ID
    subject: String,
    /// What is counted
    meter: String,
    /// From here on it is told, in the audit log and the server's own
    #[arg(long, value_name = "NUMBER")]
    soft: Option<u64>,
    /// Here sandboxes stop
    #[arg(long, value_name = "NUMBER", required_unless_present = "soft")]
    hard: Option<u64>,
    /// End sandboxes at the hard limit, instead of pausing them
    #[arg(long)]
    kill: bool,
    #[command(flatten)]
    remote: Remote,
}

/// List budgets and how much of each is used
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar budget ls")]
pub(crate) struct Ls {
    #[command(flatten)]
    remote: Remote,
}

/// Remove a budget
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar budget rm project:team-a cpu_micros")]
pub(crate) struct Rm {
    /// project:NAME, key:ID or sandbox:ID
    subject: String,
    /// What is counted
    meter: String,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Set(arguments) => set(arguments).await,
        Command::Ls(Ls { remote }) => {
            let budgets = remote.client()?.budgets().await.map_err(CommandError::asked("list budgets"))?;
            show(&budgets, &remote)
        }
        Command::Rm(Rm { subject, meter, remote }) => {
            let asked = CommandError::asked(format!("remove the budget of {subject} for {meter}"));
            remote.client()?.remove_budget(&subject, &meter).await.map_err(asked)
        }
    }
}

async fn set(arguments: Set) -> Result<(), CommandError> {
    let budget = NewBudget {
        subject: arguments.subject,
        meter: arguments.meter,
        soft: arguments.soft,
        hard: arguments.hard,
        at_limit: if arguments.kill { "kill" } else { "pause" }.to_owned(),
    };
    let asked = CommandError::asked(format!("set the budget of {} for {}", budget.subject, budget.meter));
    let set = arguments.remote.client()?.set_budget(&budget).await.map_err(asked)?;
    show(&[set], &arguments.remote)
}

fn show(budgets: &[BudgetOf], remote: &Remote) -> Result<(), CommandError> {
    if remote.json {
        return Ok(screen::json(budgets)?);
    }
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let mut table = Table::new(["SUBJECT", "METER", "USED", "SOFT", "HARD", "AT LIMIT"]);
    for budget in budgets {
        let BudgetOf { subject, meter, soft, hard, at_limit, used, .. } = budget.clone();
        table.row([subject, meter, used.to_string(), number(soft), number(hard), at_limit]);
    }
    Ok(table.print()?)
}
