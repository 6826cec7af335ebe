//! The key of a step: a digest of everything that decides what it writes.
//!
//! The project is a part of it. What a command fetches depends on what its sandbox may reach, and no project is to build on what another fetched.

use belljar_ports::StepKey;
use belljar_types::{BuildStep, LayerDigest, ProjectId, TemplateDefaults};
use sha2::{Digest, Sha256};

/// Changes when what is done for a step changes, so that older layers are not taken for it.
const VERSION: &str = "belljar step 1";

pub(super) fn of(project: &ProjectId, layers: &[LayerDigest], defaults: &TemplateDefaults, step: &BuildStep) -> StepKey {
    let mut hasher = Sha256::new();
    let process = (&defaults.env, &defaults.user, &defaults.workdir);
    for part in [VERSION.to_owned(), project.to_string(), format!("{layers:?}"), format!("{process:?}"), format!("{step:?}")] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    StepKey(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_decides_what_is_written_decides_the_key() {
        let (project, other): (ProjectId, ProjectId) = ("one".parse().unwrap(), "two".parse().unwrap());
        let layers: Vec<LayerDigest> = vec!["a".repeat(64).parse().unwrap()];
        let more: Vec<LayerDigest> = vec!["a".repeat(64).parse().unwrap(), "b".repeat(64).parse().unwrap()];
        let plain = TemplateDefaults::default();
        let mut changed = plain.clone();
        changed.env.insert("A".to_owned(), "b".to_owned());
        let run = |command: &str| BuildStep::Run { command: command.to_owned(), user: None };
        let keys = [
            of(&project, &layers, &plain, &run("ls")).0,
            of(&other, &layers, &plain, &run("ls")).0,
            of(&project, &more, &plain, &run("ls")).0,
            of(&project, &layers, &changed, &run("ls")).0,
            of(&project, &layers, &plain, &run("ls -l")).0,
        ];
        let different: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
        assert_eq!(of(&project, &layers, &plain, &run("ls")).0, keys[0]);
    }
}
