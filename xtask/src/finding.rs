//! One broken rule at one place, told so that whoever broke it needs to ask nobody.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Relative to the root of the repository.
    pub(crate) path: String,
    /// From 1; 1 for what concerns the whole file.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) wrong: String,
    /// Why the rule exists.
    pub(crate) why: &'static str,
    /// What to do.
    pub(crate) fix: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}: {}", self.path, self.line, self.wrong)?;
        writeln!(f, "    why: {}", self.why)?;
        write!(f, "    fix: {}", self.fix)
    }
}
