//! What is asked of the kernels.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use belljar_types::Invalid;

/// The name of a context, given by the program inside.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContextId(String);

impl ContextId {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ContextId {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let fits = (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        if fits { Ok(Self(text.to_owned())) } else { Err(Invalid::new("context", "1 to 64 of A-Z, a-z, 0-9, '-' and '_'", text)) }
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A context: a language, a directory and what was run in it so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Its name.
    pub id: ContextId,
    /// Its language.
    pub language: String,
    /// The directory it began in.
    pub cwd: String,
}

/// Where code runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// In this context.
    Context(ContextId),
    /// In the language's own context, which every sandbox has.
    Language(String),
}

/// Code to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// In which context.
    pub place: Where,
    /// The code.
    pub code: String,
    /// Variables for this run only.
    pub env: BTreeMap<String, String>,
    /// Variables for every run, over those of the sandbox.
    pub always_env: BTreeMap<String, String>,
    /// Interrupt it after this long.
    pub deadline: Option<Duration>,
}

/// The longest code: the program inside takes no longer request.
const LONGEST_CODE: usize = 8 << 20;
const LONGEST_LANGUAGE: usize = 32;

impl Run {
    /// Code in a language's own context, with nothing said about the rest.
    pub fn new(language: impl Into<String>, code: impl Into<String>) -> Self {
        Self {
            place: Where::Language(language.into()),
            code: code.into(),
            env: BTreeMap::new(),
            always_env: BTreeMap::new(),
            deadline: None,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), Invalid> {
        if self.code.len() > LONGEST_CODE {
            return Err(Invalid::new("code", format!("at most {LONGEST_CODE} bytes"), format!("{} bytes", self.code.len())));
        }
        if let Where::Language(language) = &self.place {
            check_language(language)?;
        }
        check_env(&self.env)
    }
}

pub(crate) fn check_language(language: &str) -> Result<(), Invalid> {
    let fits = (1..=LONGEST_LANGUAGE).contains(&language.len()) && language.chars().all(|letter| !letter.is_control());
    if fits { Ok(()) } else { Err(Invalid::new("language", format!("a word of at most {LONGEST_LANGUAGE} bytes"), language)) }
}

fn check_env(env: &BTreeMap<String, String>) -> Result<(), Invalid> {
    let wrong = |(name, value): &(&String, &String)| {
        let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        !starts || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') || value.contains('\0')
    };
    match env.iter().find(wrong) {
        Some((name, _)) => Err(Invalid::new("env", "names of letters, digits and '_', and values without a zero byte", name)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_names_that_every_language_can_set() {
        for (name, value, fits) in [
            ("FOO", "bar", true),
            ("_a1", "", true),
            ("", "x", false),
            ("1a", "x", false),
            ("A=B", "x", false),
            ("A;rm", "x", false),
            ("A", "\0", false),
        ] {
            let run = Run { env: [(name.to_owned(), value.to_owned())].into(), ..Run::new("python", "1") };
            assert_eq!(run.validate().is_ok(), fits, "{name:?}");
        }
    }

    #[test]
    fn what_no_kernel_would_take_is_refused_before_it_is_sent() {
        assert!(Run::new("", "1").validate().is_err());
        assert!(Run::new("a\nb", "1").validate().is_err());
        assert!(Run::new("python", "x".repeat(LONGEST_CODE + 1)).validate().is_err());
        assert!("../etc".parse::<ContextId>().is_err());
    }
}
