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
    /// Address of the server
    #[arg(long, env = "BELLJAR_URL", default_value = DEFAULT_URL, value_name = "URL", help_heading = "Server")]
    url: String,
    /// File that holds the API key; without it the key is taken from the variable BELLJAR_API_KEY
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    key_file: Option<PathBuf>,
    /// Certificate (PEM) to trust besides the system's, for a server with one of its own
    #[arg(long, env = "BELLJAR_CA_FILE", value_name = "FILE", help_heading = "Server")]
    ca_file: Option<PathBuf>,
    /// Print JSON for programs instead of text for people
    #[arg(long)]
    pub(crate) json: bool,
}

impl Remote {
    /// A client for this server and key.
    pub(crate) fn client(&self) -> Result<Client, CommandError> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(CommandError::file("read", path));
        let certificate = self.ca_file.as_ref().map(read).transpose()?;
        let connection = Connection { url: self.url.clone(), key: Some(self.key()?), certificate };
        Client::new(&connection).map_err(CommandError::asked("connect to the server"))
    }

    fn key(&self) -> Result<Secret<String>, CommandError> {
        let text = match &self.key_file {
            Some(path) => std::fs::read_to_string(path).map_err(CommandError::file("read the API key from", path))?,
            None => std::env::var(KEY_VARIABLE).map_err(|_| CommandError::NoKey)?,
        };
        match text.trim() {
            "" => Err(CommandError::NoKey),
            key => Ok(Secret::new(key.to_owned())),
        }
    }
}
