//! Which server a command talks to and for whom. The key comes from the environment or a file, never from the command line, where everybody on the
//! machine could read it.

use std::path::PathBuf;

use belljar_client::{Client, Connection};
use belljar_types::Secret;

use crate::command_error::CommandError;

/// Where a server listens if nobody said otherwise.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:7070";
const KEY_VARIABLE: &str = "BELLJAR_API_KEY";

/// What every command that needs a server takes.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Remote {
    /// Address of the server [default: the variable BELLJAR_URL, or else http://127.0.0.1:7070]
    #[arg(long, value_name = "URL", help_heading = "Server")]
    url: Option<String>,
    /// File that holds the API key [default: the key is in the variable BELLJAR_API_KEY]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    key_file: Option<PathBuf>,
    /// Certificate (PEM) to trust besides the system's, for a server with one of its own [default: the variable BELLJAR_CA_FILE]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    ca_file: Option<PathBuf>,
    /// Print JSON for programs instead of text for people
    #[arg(long)]
    pub(crate) json: bool,
}

impl Remote {
    /// A client for this server and key.
    pub(crate) fn client(&self) -> Result<Client, CommandError> {
        self.client_for(Some(self.key()?))
    }

    /// A client for this server and whoever brings a key.
    pub(crate) fn keyless(&self) -> Result<Client, CommandError> {
        self.client_for(None)
    }

    fn client_for(&self, key: Option<Secret<String>>) -> Result<Client, CommandError> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(CommandError::file("read", path));
        let ca_file = self.ca_file.clone().or_else(|| variable("BELLJAR_CA_FILE").map(PathBuf::from));
        let certificate = ca_file.as_ref().map(read).transpose()?;
        let url = self.url.clone().or_else(|| variable("BELLJAR_URL")).unwrap_or_else(|| DEFAULT_URL.to_owned());
        let connection = Connection { url, key, certificate };
        Client::new(&connection).map_err(CommandError::asked("connect to the server"))
    }

    fn key(&self) -> Result<Secret<String>, CommandError> {
        let text = match &self.key_file {
            Some(path) => std::fs::read_to_string(path).map_err(CommandError::file("read the API key from", path))?,
            None => variable(KEY_VARIABLE).ok_or(CommandError::NoKey)?,
        };
        match text.trim() {
            "" => Err(CommandError::NoKey),
            key => Ok(Secret::new(key.to_owned())),
        }
    }
}

/// A variable that is set to something. Read here and not by clap, whose usage lines would otherwise show it as if it had been typed.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
