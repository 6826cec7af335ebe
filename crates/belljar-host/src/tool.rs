//! Programs of the machine that the host cannot do without. Each is named with its package, so that whoever lacks it knows what to install, and
//! one that is there but fails is not mistaken for one that is missing.

use std::io;
use std::process::Output;

use belljar_types::escape_untrusted;

use crate::error::HostError;

/// A program, what it is for, and where to get it.
pub(crate) struct Tool {
    pub(crate) program: &'static str,
    pub(crate) purpose: &'static str,
    pub(crate) package: &'static str,
}

impl Tool {
    /// Whether it did what it was to do, from how its run went.
    pub(crate) fn judge(&self, run: io::Result<Output>) -> Result<(), HostError> {
        let Self { program, purpose, package } = *self;
        match run {
            Ok(output) if output.status.success() => Ok(()),
            Ok(Output { status, stderr, .. }) => Err(HostError::FailedTool { program, purpose, status, said: escape_untrusted(&stderr) }),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Err(HostError::MissingTool { program, purpose, package }),
            Err(source) => Err(HostError::RunTool { program, purpose, source }),
        }
    }
}
