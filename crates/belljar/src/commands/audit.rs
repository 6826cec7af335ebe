//! `belljar audit`: what happened, who did it, and whether the record of it is whole.

mod offline;

use std::io::Write;

use belljar_audit::to_ocsf;
use belljar_client::AuditAsk;
use belljar_types::AuditRecord;
use futures_util::TryStreamExt;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen;

/// Read, check and export the audit log
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Tail(Tail),
    Query(Query),
    Verify(Verify),
    Export(Export),
}

/// Show the last events, and those that come
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar audit tail --follow")]
pub(crate) struct Tail {
    /// How many of the last ones
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000))]
    lines: u32,
    /// Go on with those that come
    #[arg(short, long)]
    follow: bool,
    /// Another project's log (administrators)
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// Find events by sandbox, kind and time
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar audit query --sandbox sk3v9m2x8c7p4q6w5z2n
  belljar audit query --kind exec_started --since 2026-11-15T06:00:00Z --json")]
pub(crate) struct Query {
    /// Only of this sandbox
    #[arg(long, value_name = "ID")]
    sandbox: Option<String>,
    /// Only of this kind: lifecycle, exec_started, exec_ended, file, port, network, secret_use, policy, access …; may be repeated
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    /// Not before this moment
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before this moment
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// At most this many
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    limit: usize,
    /// Another project's log (administrators)
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// Check that nothing in the log was changed, removed, moved or cut off
///
/// The server reads its whole log. With `--file`, an export is checked here, without a server.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar audit verify
  belljar audit verify --file audit.jsonl --public-key 3f0c…")]
pub(crate) struct Verify {
    /// An export to check instead
    #[arg(long, value_name = "FILE")]
    file: Option<std::path::PathBuf>,
    /// The key that must have signed the export, as `belljar audit verify --json` shows it
    #[arg(long, value_name = "HEX", requires = "file")]
    public_key: Option<String>,
    /// Another project's log (administrators)
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// Write the whole log to standard output
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar audit export > audit.jsonl
  belljar audit export --format ocsf | some-collector")]
pub(crate) struct Export {
    /// `jsonl`: line by line as it is kept, with a signed checkpoint at the end; `ocsf`: in the words of the Open Cybersecurity Schema Framework
    #[arg(long, value_name = "FORMAT", default_value = "jsonl", value_parser = ["jsonl", "ocsf"])]
    format: String,
    /// Another project's log (administrators)
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Tail(arguments) => tail(arguments).await,
        Command::Query(arguments) => query(arguments).await,
        Command::Verify(arguments) => verify(arguments).await,
        Command::Export(arguments) => export(&arguments).await,
    }
}

async fn tail(arguments: Tail) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let asked = || CommandError::asked("read the audit log");
    let mut ask = AuditAsk { project: arguments.project, last: Some(arguments.lines), limit: 1000, ..AuditAsk::default() };
    loop {
        let page = client.audit(&ask).await.map_err(asked())?;
        for event in &page.events {
            show(event, arguments.remote.json)?;
        }
        ask.after = page.next_after;
        ask.last = None;
        if !page.more {
            if !arguments.follow {
                return Ok(());
            }
            ask.wait_seconds = 30;
        }
    }
}

async fn query(arguments: Query) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let mut ask = AuditAsk {
        project: arguments.project,
        sandbox: arguments.sandbox,
        kinds: (!arguments.kinds.is_empty()).then(|| arguments.kinds.join(",")),
        since: arguments.since,
        until: arguments.until,
        ..AuditAsk::default()
    };
    let mut left = arguments.limit;
    while left > 0 {
        ask.limit = u32::try_from(left.min(1000)).unwrap_or(1000);
        let page = client.audit(&ask).await.map_err(CommandError::asked("read the audit log"))?;
        for event in &page.events {
            show(event, arguments.remote.json)?;
        }
        left -= page.events.len().min(left);
        ask.after = page.next_after;
        if !page.more {
            break;
        }
    }
    Ok(())
}

/// One event: as it is for programs, or on a line for people.
fn show(event: &serde_json::Value, json: bool) -> Result<(), CommandError> {
    if json {
        return Ok(screen::json_line(event)?);
    }
    let text = |field: &str| event[field].as_str().unwrap_or("-").to_owned();
    let at =
        event["at"].as_i64().and_then(|at| jiff::Timestamp::from_millisecond(at).ok()).map_or_else(String::new, |at| format!("{at:.3}"));
    let known = ["seq", "at", "prev", "project", "sandbox", "key", "request", "kind"];
    let rest: Vec<String> = event
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !known.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    let line = format!("{} {at} {} {} {} {}", event["seq"], text("key"), text("sandbox"), text("kind"), rest.join(" "));
    Ok(screen::line(&screen::safe(&line))?)
}

async fn verify(arguments: Verify) -> Result<(), CommandError> {
    if let Some(file) = &arguments.file {
        return offline::verify(file, arguments.public_key.as_deref(), arguments.remote.json);
    }
    let client = arguments.remote.client()?;
    let verdict = client.verify_audit(arguments.project.as_deref()).await.map_err(CommandError::asked("check the audit log"))?;
    if arguments.remote.json {
        screen::json(&verdict)?;
    } else if verdict.whole {
        screen::line(&format!("whole: {} events, none changed, removed, moved or cut off", verdict.events))?;
    }
    if verdict.whole { Ok(()) } else { Err(CommandError::AuditDamaged { faults: verdict.faults }) }
}

async fn export(arguments: &Export) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let asked = || CommandError::asked("export the audit log");
    let mut pieces = Box::pin(client.export_audit(arguments.project.as_deref()).await.map_err(asked())?);
    let ocsf = arguments.format == "ocsf";
    let mut out = std::io::stdout().lock();
    let mut unfinished = Vec::new();
    while let Some(piece) = pieces.try_next().await.map_err(asked())? {
        if !ocsf {
            out.write_all(&piece).map_err(|source| screen::Silent { source })?;
            continue;
        }
        unfinished.extend_from_slice(&piece);
        while let Some(end) = unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unfinished.drain(..=end).collect();
            // The checkpoint at the end is no event.
            if let Ok(record) = serde_json::from_slice::<AuditRecord>(&line) {
                writeln!(out, "{}", to_ocsf(&record)).map_err(|source| screen::Silent { source })?;
            }
        }
    }
    Ok(out.flush().map_err(|source| screen::Silent { source })?)
}
