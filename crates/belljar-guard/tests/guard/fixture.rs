//! A place on disk for one test, and the guard run in it by somebody.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const USER: u32 = 12345;

/// Who runs the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Root,
    User,
}

impl Who {
    pub(crate) const BOTH: [Self; 2] = [Self::Root, Self::User];

    pub(crate) fn id(self) -> u32 {
        match self {
            Self::Root => 0,
            Self::User => USER,
        }
    }
}

/// A tree to run in, something beside it that must stay out of reach, and a home.
pub(crate) struct Place {
    pub(crate) who: Who,
    base: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(who: Who) -> Self {
        let base = tempfile::Builder::new().prefix("guard-").permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
        let place = Self { who, base };
        let program = place.base.path().join("belljar-run");
        // The build directory may lie where an ordinary user cannot go.
        fs::hard_link(env!("CARGO_BIN_EXE_belljar-run"), &program)
            .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_belljar-run"), &program).map(drop))
            .unwrap();
        for directory in ["tree", "outside", "home"] {
            fs::create_dir(place.base.path().join(directory)).unwrap();
            place.own(&place.base.path().join(directory));
        }
        place.write_outside("secret", "TOPSECRET");
        place
    }

    fn own(&self, path: &Path) {
        std::os::unix::fs::lchown(path, Some(self.who.id()), Some(self.who.id())).unwrap();
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.base.path().join("tree")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.base.path().join("outside")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.base.path().join("home")
    }

    pub(crate) fn guard_program(&self) -> PathBuf {
        self.base.path().join("belljar-run")
    }

    fn write_outside(&self, name: &str, text: &str) {
        let path = self.outside().join(name);
        fs::write(&path, text).unwrap();
        self.own(&path);
    }

    /// Writes a file of the tree, with the directories on the way to it.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let mut directory = self.tree();
        let path = directory.join(name);
        for part in Path::new(name).parent().unwrap().components() {
            directory.push(part);
            if !directory.exists() {
                fs::create_dir(&directory).unwrap();
                self.own(&directory);
            }
        }
        fs::write(&path, text).unwrap();
        self.own(&path);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.tree().join(name)).unwrap()
    }

    /// A program run by this somebody in the tree, without a guard.
    pub(crate) fn bare(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        // Whoever started the tests may have had signals ignored, which children inherit and shells cannot undo.
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(program);
        command.current_dir(self.tree()).env("HOME", self.home()).env("SECRET_TOKEN", "TOPSECRET").stdin(Stdio::null());
        if self.who == Who::User {
            command.uid(USER).gid(USER);
        }
        command
    }

    /// The guard run by this somebody in the tree.
    pub(crate) fn guard(&self, options: &[&str]) -> Command {
        let mut command = self.bare(self.guard_program());
        command.args(options).arg("--");
        command
    }

    pub(crate) fn shell(&self, options: &[&str], script: &str) -> Output {
        self.guard(options).args(["sh", "-c", script]).output().unwrap()
    }

    pub(crate) fn bare_shell(&self, script: &str) -> Output {
        // With a parent of the same user, as the command has inside.
        self.bare("sh").args(["-c", "sh -c \"$0\"; true", script]).output().unwrap()
    }
}

/// What somebody reads, for the words of a failed assertion.
pub(crate) fn words(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned();
    format!("{:?}\nout: {}\nerr: {}", output.status, text(&output.stdout), text(&output.stderr))
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
