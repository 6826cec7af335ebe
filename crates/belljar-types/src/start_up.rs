//! What a template starts in every sandbox, and how to tell that it is ready: a server that is up before its first client comes.

use std::time::Duration;

use crate::Invalid;

/// The most a command may be long: it is an argument of a shell.
const COMMAND_MAX: usize = 64 << 10;
/// How long a sandbox may take to be ready when its template does not say.
const WITHIN_SECONDS: u64 = 60;
/// The longest it may take.
const WITHIN_SECONDS_MAX: u64 = 600;

/// What is started in a sandbox before anybody may use it, as its template's user, in its template's directory.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartUp {
    /// A shell's command that goes on in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// How to tell that the sandbox may be used; at once when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadyCheck>,
    /// How many seconds that may take; 60 when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_seconds: Option<u64>,
    /// Keep an image of the memory of the first sandbox that is ready, where its class can, and let later ones begin with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
}

/// How to tell that a sandbox may be used.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadyCheck {
    /// A program listens on this port.
    Port(u16),
    /// This shell's command succeeds; it is run again until it does.
    Command(String),
}

impl StartUp {
    /// How long the sandbox may take to be ready.
    pub fn within(&self) -> Duration {
        Duration::from_secs(self.within_seconds.unwrap_or(WITHIN_SECONDS))
    }

    /// Refuses what no shell would take.
    pub fn validate(&self) -> Result<(), Invalid> {
        let check = match &self.ready {
            Some(ReadyCheck::Command(command)) => Some(command),
            Some(ReadyCheck::Port(0)) => return Err(Invalid::new("start.ready.port", "a port from 1 to 65535", "0")),
            Some(ReadyCheck::Port(_)) | None => None,
        };
        for (field, command) in [("start.command", self.command.as_ref()), ("start.ready.command", check)] {
            if let Some(command) =
                command.filter(|command| command.trim().is_empty() || command.len() > COMMAND_MAX || command.contains('\0'))
            {
                return Err(Invalid::new(field, format!("a shell's command of at most {COMMAND_MAX} bytes, without NUL"), command));
            }
        }
        match self.within_seconds {
            Some(seconds) if !(1..=WITHIN_SECONDS_MAX).contains(&seconds) => {
                Err(Invalid::new("start.within_seconds", format!("1 to {WITHIN_SECONDS_MAX}"), seconds.to_string()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TemplateDefaults;

    #[test]
    fn templates_from_before_there_was_a_start_are_still_read() {
        let old: TemplateDefaults = serde_json::from_str(r#"{"env":{"A":"b"},"user":"user","workdir":null}"#).unwrap();
        assert_eq!(old.start, None);
        assert!(!serde_json::to_string(&old).unwrap().contains("start"), "and whoever is older still reads what is written now");
    }

    #[test]
    fn what_is_written_is_read_again() {
        for ready in [None, Some(ReadyCheck::Port(80)), Some(ReadyCheck::Command("test -e /ready".to_owned()))] {
            let start = StartUp { command: Some("serve".to_owned()), ready, within_seconds: Some(5), warm: true };
            let text = serde_json::to_string(&start).unwrap();
            assert_eq!(serde_json::from_str::<StartUp>(&text).unwrap(), start, "{text}");
        }
    }

    #[test]
    fn what_no_shell_would_take_is_refused_by_name() {
        let start = StartUp { command: Some("serve".to_owned()), ..StartUp::default() };
        let refused = [
            (StartUp { command: Some("a\0b".to_owned()), ..start.clone() }, "start.command"),
            (StartUp { command: Some(" ".to_owned()), ..start.clone() }, "start.command"),
            (StartUp { ready: Some(ReadyCheck::Port(0)), ..start.clone() }, "start.ready.port"),
            (StartUp { ready: Some(ReadyCheck::Command(String::new())), ..start.clone() }, "start.ready.command"),
            (StartUp { within_seconds: Some(0), ..start.clone() }, "start.within_seconds"),
            (StartUp { within_seconds: Some(601), ..start.clone() }, "start.within_seconds"),
        ];
        for (bad, field) in refused {
            assert_eq!(bad.validate().unwrap_err().field, field, "{bad:?}");
        }
        start.validate().unwrap();
    }
}
