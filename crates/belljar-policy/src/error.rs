//! Why a document was refused. Every variant names the rule or the field, so that whoever wrote it finds it.

use belljar_types::Invalid;

/// A document that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It is no such document.
    #[error("policy.{field}: {problem}")]
    Parse {
        /// Where, dotted; `document` when the text as a whole is wrong.
        field: String,
        /// What is wrong there.
        problem: String,
    },
    /// A value in it is wrong.
    #[error("policy rule {rule}: {problem}")]
    Rule {
        /// Which rule.
        rule: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It allows more than the document above it.
    #[error("policy rule {rule} allows more than {above} does: {problem}; a policy may only narrow the one above it")]
    Widening {
        /// Which rule.
        rule: String,
        /// The document above.
        above: String,
        /// What is too much.
        problem: String,
    },
    /// Nobody can hold it here.
    #[error("policy rule {rule} cannot be enforced by the {class} class on this server: {problem}")]
    Unenforceable {
        /// Which rule.
        rule: String,
        /// What was to run it.
        class: String,
        /// Why not, and what to do.
        problem: String,
    },
    /// There is no profile of that name.
    #[error("there is no policy profile {name:?}: the profiles are {known}")]
    NoProfile {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
}

impl PolicyError {
    pub(crate) fn rule(rule: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Rule { rule: rule.into(), problem: problem.into() }
    }

    /// As refused input: the field is the rule.
    pub fn as_invalid(&self) -> Invalid {
        let (field, expected) = match self {
            Self::Parse { field, problem } => (format!("policy.{field}"), problem.clone()),
            Self::Rule { rule, problem } => (format!("policy.{rule}"), problem.clone()),
            Self::Widening { rule, above, problem } => (format!("policy.{rule}"), format!("no more than {above} allows: {problem}")),
            Self::Unenforceable { rule, class, problem } => {
                (format!("policy.{rule}"), format!("what the {class} class can hold: {problem}"))
            }
            Self::NoProfile { known, .. } => ("policy".to_owned(), format!("a document or one of {known}")),
        };
        let got = match self {
            Self::NoProfile { name, .. } => name.clone(),
            other => other.to_string(),
        };
        Invalid::new(field, expected, got)
    }
}
