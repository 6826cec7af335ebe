//! The arguments of `sudo` that people and scripts use.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// What was asked on the command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) user: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) keep_env: bool,
    pub(crate) login: bool,
    pub(crate) shell: bool,
    pub(crate) directory: Option<Vec<u8>>,
    pub(crate) set: Vec<Vec<u8>>,
    pub(crate) argv: Vec<Vec<u8>>,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Run something.
    Run(Options),
    /// Say what may be run (`-l`).
    List,
    /// Say who this is (`-V`).
    Version,
    /// Nothing: there is no password to remember or forget (`-v`, `-k`).
    Nothing,
}

/// Words for a command line that makes no sense.
pub(crate) type Wrong = String;

/// Understands a command line.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Asked, Wrong> {
    let mut arguments = arguments.map(OsStringExt::into_vec).peekable();
    let mut options = Options::default();
    let mut nothing = false;
    while let Some(argument) = arguments.next_if(|argument| argument.first() == Some(&b'-') && argument.len() > 1) {
        if argument == b"--" {
            break;
        }
        let text = String::from_utf8_lossy(&argument).into_owned();
        let (name, attached) = match text.strip_prefix("--") {
            Some(long) => match long.split_once('=') {
                Some((name, value)) => (long_option(name)?, Some(value.to_owned())),
                None => (long_option(long)?, None),
            },
            None => {
                let mut letters = text.chars().skip(1);
                let mut last = None;
                let mut attached = None;
                while let Some(letter) = letters.next() {
                    if takes_value(letter) {
                        let rest: String = letters.by_ref().collect();
                        attached = (!rest.is_empty()).then_some(rest);
                        last = Some(letter);
                    } else if let Some(done) = flag(letter, &mut options, &mut nothing)? {
                        return Ok(done);
                    }
                }
                match last {
                    Some(letter) => (letter, attached),
                    None => continue,
                }
            }
        };
        if !takes_value(name) {
            if let Some(done) = flag(name, &mut options, &mut nothing)? {
                return Ok(done);
            }
            continue;
        }
        let value = match attached {
            Some(value) => value,
            None if name == 'E' => String::new(),
            None => String::from_utf8_lossy(&arguments.next().ok_or_else(|| format!("{text} needs a value"))?).into_owned(),
        };
        match name {
            'u' => options.user = Some(value.trim_start_matches('#').to_owned()),
            'g' => options.group = Some(value.trim_start_matches('#').to_owned()),
            'D' => options.directory = Some(value.into_bytes()),
            // A prompt, a host, a time-out: nothing here asks, and nothing waits.
            _ => {}
        }
    }
    while let Some(variable) = arguments.next_if(|argument| is_assignment(argument)) {
        options.set.push(variable);
    }
    options.argv = arguments.collect();
    if options.argv.is_empty() && nothing {
        return Ok(Asked::Nothing);
    }
    if options.argv.is_empty() && !options.login && !options.shell {
        return Err("no command: sudo COMMAND, sudo -s for a shell, sudo -i for a login shell".into());
    }
    Ok(Asked::Run(options))
}

fn takes_value(letter: char) -> bool {
    matches!(letter, 'u' | 'g' | 'p' | 'h' | 'C' | 'D' | 'R' | 'T' | 'r' | 't')
}

fn flag(letter: char, options: &mut Options, nothing: &mut bool) -> Result<Option<Asked>, Wrong> {
    match letter {
        'E' => options.keep_env = true,
        'i' => options.login = true,
        's' => options.shell = true,
        'v' | 'k' | 'K' => *nothing = true,
        'l' => return Ok(Some(Asked::List)),
        'V' => return Ok(Some(Asked::Version)),
        // No password is asked for, the home is always the target's, and nothing rings.
        'n' | 'S' | 'A' | 'H' | 'B' | 'b' | 'P' | 'N' => {}
        other => return Err(format!("this sudo has no option -{other}")),
    }
    Ok(None)
}

fn long_option(name: &str) -> Result<char, Wrong> {
    Ok(match name {
        "user" => 'u',
        "group" => 'g',
        "preserve-env" => 'E',
        "login" => 'i',
        "shell" => 's',
        "non-interactive" => 'n',
        "stdin" => 'S',
        "askpass" => 'A',
        "set-home" => 'H',
        "validate" => 'v',
        "reset-timestamp" => 'k',
        "remove-timestamp" => 'K',
        "list" => 'l',
        "version" => 'V',
        "prompt" => 'p',
        "chdir" => 'D',
        "preserve-groups" => 'P',
        other => return Err(format!("this sudo has no option --{other}")),
    })
}

fn is_assignment(argument: &[u8]) -> bool {
    let name = argument.split(|b| *b == b'=').next().unwrap_or_default();
    let plain = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    name.len() < argument.len() && !name.is_empty() && name.iter().all(plain) && !name.first().is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Options {
        match parse(line.split_whitespace().map(OsString::from)).unwrap() {
            Asked::Run(options) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ordinary_command_lines_are_understood() {
        let options = run("-n -E -u nobody A=1 B=2 -- ls");
        assert_eq!((options.user.as_deref(), options.keep_env, options.set.len()), (Some("nobody"), true, 2));
        assert_eq!(run("-nEu nobody ls -l").argv, [b"ls".to_vec(), b"-l".to_vec()]);
        assert_eq!(run("-unobody id").user.as_deref(), Some("nobody"));
        assert_eq!(run("--user=#0 id").user.as_deref(), Some("0"));
        assert_eq!(run("--preserve-env=PATH id").argv, [b"id".to_vec()]);
        assert_eq!(run("-- -x").argv, [b"-x".to_vec()]);
        assert!(run("-i").login);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        assert!(parse(std::iter::empty()).unwrap_err().contains("no command"));
        assert!(parse(["-u"].into_iter().map(OsString::from)).unwrap_err().contains("needs a value"));
        assert!(parse(["-Z", "id"].into_iter().map(OsString::from)).unwrap_err().contains("-Z"));
        assert_eq!(parse(["-v"].into_iter().map(OsString::from)), Ok(Asked::Nothing));
    }
}
