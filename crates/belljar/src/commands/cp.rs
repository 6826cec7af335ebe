//! `belljar cp`: files and directories into a sandbox and out of it.
//!
//! Directories are walked one at a time and files are streamed, so memory does not grow with what is copied.

mod download;
mod landing;
mod place;
mod report;
mod upload;

use std::ffi::OsString;

use belljar_client::Client;

use crate::command_error::CommandError;
use crate::remote::Remote;
use place::Place;
use report::Report;

/// Files that are on their way at one time.
const TOGETHER: usize = 8;

/// Copy files and directories into a sandbox or out of it
///
/// One of the two is SANDBOX:PATH; a path that does not begin with / is below the user's home there. If the destination is a directory, the source is put
/// into it. `-` is standard input or output.
///
/// Permissions are kept as far as the umask, or the sandbox, allows; owners are not. Symbolic links are copied as links; on the way out, links that
/// lead out of the copied directory are left out, and nothing is ever written outside the destination, whatever files in the sandbox are called.
/// Devices, pipes and sockets are left out. What was left out is said.
///
/// With --json, one document: how much was copied and what was left out.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar cp ./src $S:/work/            a directory into a directory
  belljar cp $S:/work/report.pdf .      a file out of it
  belljar cp --user root hosts $S:/etc/hosts
  belljar cp $S:/var/log/syslog - | grep error")]
pub(crate) struct Arguments {
    /// From where
    #[arg(value_name = "SOURCE")]
    from: OsString,
    /// To where
    #[arg(value_name = "DESTINATION")]
    to: OsString,
    /// Who reads and writes in the sandbox [default: the template's user]
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// What both ways need.
struct Copying {
    client: Client,
    user: Option<String>,
    report: Report,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let wrong = |text| CommandError::Usage { what: text, hint: "`belljar cp --help` has examples" };
    let (from, to) = (Place::parse(&arguments.from).map_err(wrong)?, Place::parse(&arguments.to).map_err(wrong)?);
    let copying = Copying { client: arguments.remote.client()?, user: arguments.user, report: Report::new() };
    let to_stream = to == Place::Stream;
    match (from, to) {
        (Place::Sandbox(sandbox, path), Place::Here(to)) => download::to_disk(&copying, &sandbox, &path, &to).await?,
        (Place::Sandbox(sandbox, path), Place::Stream) => download::to_stream(&copying, &sandbox, &path).await?,
        (Place::Here(from), Place::Sandbox(sandbox, path)) => upload::from_disk(&copying, &from, &sandbox, &path).await?,
        (Place::Stream, Place::Sandbox(sandbox, path)) => upload::from_stream(&copying, &sandbox, &path).await?,
        (Place::Sandbox(..), Place::Sandbox(..)) => {
            return Err(wrong("copying from sandbox to sandbox is not possible; copy to this machine in between".to_owned()));
        }
        _ => return Err(wrong("neither side is SANDBOX:PATH with the id of a sandbox".to_owned())),
    }
    copying.report.tell(arguments.remote.json, to_stream)
}
