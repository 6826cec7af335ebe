//! The steps of a launch, by name, so that a failure says which one it was.

use std::fmt;

use super::Launch;

/// What was being attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "each step's words are its documentation, below")]
pub enum Step {
    Prepare,
    CloneUsher,
    DieWithServer,
    JoinCgroup,
    JoinNetwork,
    JoinMounts,
    JoinUsers,
    CloneFirst,
    BecomeRoot,
    SeparateMounts,
    AttachRoot,
    ChangeRoot,
    AttachMount,
    MountProcesses,
    MountTerminals,
    MaskFile,
    MaskDirectory,
    MakeReadOnly,
    DropOldRoot,
    SetHostname,
    SetLimit,
    DropCapabilities,
    ForbidNewPrivileges,
    Fence,
    SetStreams,
    CloseDescriptors,
    ResetSignals,
    Filter,
    Execute,
}

const STEPS: [(Step, &str); 29] = [
    (Step::Prepare, "prepare the launch"),
    (Step::CloneUsher, "clone the usher process into the sandbox's cgroup"),
    (Step::DieWithServer, "tie the new process's life to the server's"),
    (Step::JoinCgroup, "join the sandbox's cgroup"),
    (Step::JoinNetwork, "join the sandbox's network namespace"),
    (Step::JoinMounts, "join the bare mount namespace"),
    (Step::JoinUsers, "join the sandbox's user namespace"),
    (Step::CloneFirst, "clone the first process with its own namespaces"),
    (Step::BecomeRoot, "become root of the sandbox's user namespace"),
    (Step::SeparateMounts, "separate the sandbox's mounts from the host's"),
    (Step::AttachRoot, "attach the root filesystem"),
    (Step::ChangeRoot, "change the root directory"),
    (Step::AttachMount, "attach the mount at"),
    (Step::MountProcesses, "mount /proc"),
    (Step::MountTerminals, "mount /dev/pts"),
    (Step::MaskFile, "mask the file"),
    (Step::MaskDirectory, "mask the directory"),
    (Step::MakeReadOnly, "make read-only"),
    (Step::DropOldRoot, "let go of the host's mounts"),
    (Step::SetHostname, "set the host name"),
    (Step::SetLimit, "set a process limit"),
    (Step::DropCapabilities, "drop capabilities"),
    (Step::ForbidNewPrivileges, "forbid new privileges"),
    (Step::Fence, "put up Landlock's fence"),
    (Step::SetStreams, "set the standard streams"),
    (Step::CloseDescriptors, "close the server's descriptors"),
    (Step::ResetSignals, "reset signals"),
    (Step::Filter, "install the system call filter"),
    (Step::Execute, "execute"),
];

impl Step {
    pub(super) fn from_number(number: u32) -> Self {
        STEPS.iter().map(|(step, _)| *step).find(|step| *step as u32 == number).unwrap_or(Self::Prepare)
    }

    /// What the step was working on, for the steps that have several objects.
    pub(super) fn object(self, launch: &Launch, index: u32) -> String {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let path = match self {
            Self::AttachMount => launch.mounts.get(index).map(|attach| &attach.at),
            Self::MaskFile => launch.masked_files.get(index),
            Self::MaskDirectory => launch.masked_directories.get(index),
            Self::MakeReadOnly => launch.read_only.get(index),
            Self::Execute => Some(&launch.program),
            _ => None,
        };
        path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STEPS.iter().find(|(step, _)| step == self).map_or("prepare the launch", |(_, words)| words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_its_own_words_and_number() {
        for (position, (step, words)) in STEPS.iter().enumerate() {
            assert_eq!(*step as usize, position);
            assert_eq!(Step::from_number(u32::try_from(position).unwrap()), *step);
            assert_eq!(step.to_string(), *words);
        }
    }
}
