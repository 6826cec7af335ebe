//! How far a sink has come in each project's log: a small file, replaced whole.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use belljar_linux::private_file::write_whole;
use belljar_types::ProjectId;

use crate::sink::SinkError;

/// The number of the last event that was taken, by project.
#[derive(Debug)]
pub(crate) struct Marks {
    path: PathBuf,
    of: BTreeMap<String, u64>,
}

impl Marks {
    /// Reads the marks of a sink. Ones that cannot be read are an error: to begin anew would carry everything again.
    pub(crate) fn open(path: PathBuf) -> Result<Self, SinkError> {
        let of = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| SinkError::Mark { path: path.clone(), source: error.into() })?,
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
            Err(source) => return Err(SinkError::Mark { path, source }),
        };
        Ok(Self { path, of })
    }

    pub(crate) fn of(&self, project: &ProjectId) -> u64 {
        self.of.get(project.as_str()).copied().unwrap_or(0)
    }

    /// Everything up to this number was taken.
    pub(crate) fn set(&mut self, project: &ProjectId, sequence: u64) -> Result<(), SinkError> {
        let failed = |source| SinkError::Mark { path: self.path.clone(), source };
        let mut next = self.of.clone();
        next.insert(project.to_string(), sequence);
        let bytes = serde_json::to_vec(&next).map_err(|error| failed(error.into()))?;
        write_whole(&self.path, &bytes).map_err(failed)?;
        self.of = next;
        Ok(())
    }
}
