//! `belljar env`: what a shell on the server's machine needs to know, to be given to `eval`.

use std::path::PathBuf;

use crate::command_error::{CommandError, told};
use crate::config::Config;
use crate::remote::DEFAULT_URL;
use crate::screen;

/// Print the variables that the other commands, or another vendor's SDKs, read, for `eval`
///
/// Run it on the machine of the server, as root: it reads where the server listens and its first key, an administrator's, from the
/// data directory. Elsewhere, set BELLJAR_URL and BELLJAR_API_KEY yourself; `belljar key add` makes keys for others.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  eval \"$(belljar env)\"\n  belljar ls\n\n  eval \"$(belljar env e2b)\"\n  python my_program_for_e2b.py\n\n  eval \"$(belljar env daytona)\"\n  python my_program_for_daytona.py"
)]
pub(crate) struct Arguments {
    /// Whose SDKs the variables are for; Belljar's own commands when not given
    #[arg(value_enum, value_name = "FOR")]
    for_whom: Option<ForWhom>,
    /// The configuration file of the server, which says where its data is [default: /etc/belljar/belljar.toml, if it is there]
    #[arg(long, env = "BELLJAR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the server keeps its data [default: /var/lib/belljar]
    #[arg(long, env = "BELLJAR_DATA_DIR", value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
    /// Print JSON for programs instead of text for a shell
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ForWhom {
    /// E2B's SDKs and command line
    E2b,
    /// Daytona's SDKs
    Daytona,
}

#[derive(serde::Deserialize)]
struct ServerFile {
    url: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let data_dir = data_dir(arguments)?;
    let path = data_dir.join("first-key");
    let key = match std::fs::read_to_string(&path) {
        Ok(text) => text.trim().to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(CommandError::Advised {
                what: format!("there is no {}: no server was ever started with this data directory", path.display()),
                hint: "start one with `belljar serve`, or say where its data is with --data-dir".to_owned(),
            });
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(CommandError::Advised {
                what: format!("{} may be read by its owner only", path.display()),
                hint: "run this as root: eval \"$(sudo belljar env)\"".to_owned(),
            });
        }
        Err(error) => return Err(CommandError::file("read", path)(error)),
    };
    let url = std::fs::read(data_dir.join("server.json")).ok().and_then(|text| serde_json::from_slice::<ServerFile>(&text).ok());
    if url.is_none() {
        screen::remark("# the server is not running at the moment; the address is the one it would have by default");
    }
    let url = url.map_or_else(|| DEFAULT_URL.to_owned(), |file| file.url);
    let variables = variables(arguments.for_whom, &url, &key);
    if arguments.json {
        let all: serde_json::Map<_, _> = variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        screen::json(&serde_json::Value::from(all))?;
    } else {
        for (name, value) in variables {
            screen::line(&format!("export {name}={}", quoted(&value)))?;
        }
    }
    Ok(())
}

/// As the server finds it. What is given comes first, so that a configuration that only root may read is not asked for needlessly.
fn data_dir(arguments: &Arguments) -> Result<PathBuf, CommandError> {
    if let Some(given) = &arguments.data_dir {
        return Ok(given.clone());
    }
    Config::load(arguments.config.as_deref()).map(|config| config.data_dir()).map_err(|error| CommandError::Advised {
        what: told(&error),
        hint: "say where the server's data is with --data-dir; if only root may read the configuration: eval \"$(sudo belljar env)\""
            .to_owned(),
    })
}

fn variables(for_whom: Option<ForWhom>, url: &str, key: &str) -> Vec<(&'static str, String)> {
    match for_whom {
        None => vec![("BELLJAR_URL", url.to_owned()), ("BELLJAR_API_KEY", key.to_owned())],
        Some(ForWhom::Daytona) => {
            vec![("DAYTONA_API_KEY", key.to_owned()), ("DAYTONA_API_URL", format!("{url}{}", belljar_dialect_daytona::API_PATH))]
        }
        Some(ForWhom::E2b) => {
            // The same key: E2B's clients want their own prefix before its digits.
            let key = key.strip_prefix("bj_").map_or_else(|| key.to_owned(), |digits| format!("e2b_{digits}"));
            vec![
                ("E2B_API_KEY", key),
                ("E2B_API_URL", url.to_owned()),
                ("E2B_SANDBOX_URL", url.to_owned()),
                ("E2B_VOLUME_API_URL", url.to_owned()),
            ]
        }
    }
}

/// As one word for a shell, whatever is in it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/' | '[' | ']');
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_where_the_server_keeps_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("belljar.toml");
        std::fs::write(&file, "data_dir = \"/srv/belljar\"").unwrap();
        let found = |data_dir: Option<&str>| {
            let arguments = Arguments { for_whom: None, config: Some(file.clone()), data_dir: data_dir.map(PathBuf::from), json: false };
            super::data_dir(&arguments)
        };
        assert_eq!(found(None).unwrap(), PathBuf::from("/srv/belljar"));
        assert_eq!(found(Some("/elsewhere")).unwrap(), PathBuf::from("/elsewhere"));
        std::fs::write(&file, "no_such_key = 1").unwrap();
        assert!(matches!(found(None), Err(CommandError::Advised { what, .. }) if what.contains("no_such_key")));
    }

    #[test]
    fn nothing_in_a_value_is_run_by_the_shell() {
        for (text, word) in [
            ("http://127.0.0.1:7070", "http://127.0.0.1:7070"),
            ("bj_0a", "bj_0a"),
            ("a b; rm", "'a b; rm'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(text), word);
        }
    }
}
