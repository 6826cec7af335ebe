//! What is done while a place is full, and what must hold if it failed and if it worked.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::process::{Command, Stdio};

use belljar_client::{BuildLine, ClientError, NewClone, NewForks, NewImport, NewSnapshot, NewVolume};
use belljar_testkit::small_root;
use belljar_types::SandboxId;
use bytes::Bytes;
use futures_util::TryStreamExt;

use crate::scene::Scene;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// With the program, into a file on the small disk.
    Export,
    Import,
    /// To blobs that are a directory on the small disk.
    Push,
    Pull,
    CloneVolume,
    /// Of the layers of a template that was removed.
    Sweep,
    /// What one does about a full pool: a sandbox, a snapshot and a volume go.
    MakeRoom,
}

pub(crate) const VERBS: [Verb; 7] = [Verb::Export, Verb::Import, Verb::Push, Verb::Pull, Verb::CloneVolume, Verb::Sweep, Verb::MakeRoom];
const EXPORT: &str = "export.belljar";
const CONTENT: &[u8] = b"what a volume holds";

impl Verb {
    /// Whether the small disk is what runs full, and not the pool.
    pub(crate) fn is_outside(self) -> bool {
        matches!(self, Self::Export | Self::Push)
    }

    /// Whether it writes so much that a place can be full for it.
    pub(crate) fn needs_room(self) -> bool {
        matches!(self, Self::Export | Self::Import | Self::Push | Self::Pull)
    }

    /// Whether it makes room, and so must work where there is none.
    pub(crate) fn makes_room(self) -> bool {
        matches!(self, Self::Sweep | Self::MakeRoom)
    }

    /// Whether words tell a person which place was full.
    pub(crate) fn names_the_place(self, words: &str) -> bool {
        match self {
            Self::Export => words.contains("export.belljar") && words.contains("No space left on device"),
            Self::Push => words.contains("blobs_full") && words.contains("blobs"),
            Self::Sweep | Self::MakeRoom => false,
            Self::Import | Self::Pull | Self::CloneVolume => words.contains("busy") && words.contains("disk space"),
        }
    }
}

/// What was there before.
pub(crate) struct Ground {
    mark: Bytes,
    /// The snapshot as a file.
    file: Bytes,
    snapshots: BTreeSet<String>,
    blobs: BTreeSet<String>,
    /// What goes to make room.
    spare: Option<(SandboxId, String)>,
}

impl Scene<'_> {
    pub(crate) async fn prepare(&self, verb: Verb) -> Ground {
        let mut file = Bytes::new();
        if verb == Verb::Import {
            let pieces: Vec<Bytes> = self.client.export_snapshot(&self.kept.id).await.unwrap().try_collect().await.unwrap();
            file = Bytes::from(pieces.concat());
        }
        if verb == Verb::Pull {
            self.client.push_snapshot(&self.kept.id).await.unwrap();
        }
        if verb == Verb::CloneVolume {
            let volume = NewVolume { name: "origin".to_owned(), bucket: None, size_bytes: Some(8 << 20) };
            self.client.create_volume(&volume).await.unwrap();
            self.client.write_volume_file("origin", "/file", None, CONTENT).await.unwrap();
        }
        let mut spare = None;
        if verb == Verb::MakeRoom {
            let volume = NewVolume { name: "spare".to_owned(), bucket: None, size_bytes: Some(8 << 20) };
            self.client.create_volume(&volume).await.unwrap();
            let forks = self.client.fork_snapshot(&self.kept.id, &NewForks { count: 1, ..NewForks::default() }).await.unwrap();
            let fork = forks.into_iter().next().unwrap().sandbox.unwrap();
            let taken = self.client.take_snapshot(&fork.id, &NewSnapshot::default()).await.unwrap();
            spare = Some((fork.id, taken.id));
        }
        let before: BTreeSet<String> = self.client.clean_up(true).await.unwrap().layers.into_iter().collect();
        assert_eq!(before, BTreeSet::new(), "a round before left layers");
        if verb == Verb::Sweep {
            self.leave_a_layer().await;
        }
        let unused = self.client.clean_up(true).await.unwrap().layers;
        assert_eq!(unused.is_empty(), verb != Verb::Sweep);
        Ground { mark: self.mark().await, file, snapshots: self.snapshots().await, blobs: self.blobs(), spare }
    }

    /// Does it; says why not, as whoever asked was told.
    pub(crate) async fn perform(&self, verb: Verb, ground: &Ground) -> Result<(), String> {
        match verb {
            Verb::Export => self.export(),
            Verb::Import => {
                self.client.import_snapshot(ground.file.clone(), &NewImport::default()).await.map(drop).map_err(|error| told(&error))
            }
            Verb::Push => self.client.push_snapshot(&self.kept.id).await.map(drop).map_err(|error| told(&error)),
            Verb::Pull => self.client.pull_snapshot(&self.kept.id, &NewImport::default()).await.map(drop).map_err(|error| told(&error)),
            Verb::CloneVolume => {
                let request = NewClone { name: "copy".to_owned(), size_bytes: None, read_only: false };
                self.client.clone_volume("origin", &request).await.map(drop).map_err(|error| told(&error))
            }
            Verb::Sweep => self.client.clean_up(false).await.map(drop).map_err(|error| told(&error)),
            Verb::MakeRoom => {
                let (sandbox, snapshot) = ground.spare.as_ref().unwrap();
                self.client.kill_sandbox(sandbox).await.map_err(|error| told(&error))?;
                self.client.remove_snapshot(snapshot).await.map_err(|error| told(&error))?;
                self.client.remove_volume("spare").await.map_err(|error| told(&error))
            }
        }
    }

    /// It failed: nothing of it is seen, and what was there is there.
    pub(crate) async fn check_nothing_of_it(&self, verb: Verb, ground: &Ground, context: &str) {
        self.check_alive(context).await;
        assert_eq!(self.snapshots().await, ground.snapshots, "{context}");
        assert_eq!(self.on_disk("snapshots"), ground.snapshots, "{context}");
        assert_eq!(self.on_disk("pool/staging"), BTreeSet::new(), "{context}");
        match verb {
            Verb::Export => assert_eq!(self.exported(), BTreeSet::new(), "{context}: a part of it is there"),
            Verb::Push => {
                // Layers that were sent are whole, and are not sent again.
                let new = self.blobs().into_iter().filter(|blob| !ground.blobs.contains(blob)).find(|blob| !blob.starts_with("layers/"));
                assert_eq!(new, None, "{context}");
                let pulled = self.client.pull_snapshot(&self.kept.id, &NewImport::default()).await;
                assert_eq!(pulled.unwrap_err().code(), Some("snapshot_not_found"), "{context}");
            }
            Verb::CloneVolume => assert_eq!(self.volumes().await, ["origin"], "{context}"),
            Verb::Import | Verb::Pull | Verb::Sweep | Verb::MakeRoom => {}
        }
    }

    /// It worked, and what came of it is whole.
    pub(crate) async fn check_done(&self, verb: Verb, ground: &Ground, context: &str) {
        match verb {
            Verb::Export => {
                assert_eq!(self.exported(), BTreeSet::from([EXPORT.to_owned()]), "{context}");
                let file = fs::read(self.outside.path().join(EXPORT)).unwrap();
                fs::remove_file(self.outside.path().join(EXPORT)).unwrap();
                self.client.import_snapshot(file, &NewImport::default()).await.unwrap_or_else(|error| panic!("{context}: {error:?}"));
            }
            Verb::Push => {
                let pulled = self.client.pull_snapshot(&self.kept.id, &NewImport::default()).await;
                pulled.unwrap_or_else(|error| panic!("{context}: {error:?}"));
            }
            Verb::CloneVolume => {
                assert_eq!(self.volumes().await, ["copy", "origin"], "{context}");
                let copied = self.client.read_volume_file("copy", "/file").await.unwrap().pieces();
                assert_eq!(copied.try_collect::<Vec<Bytes>>().await.unwrap().concat(), CONTENT, "{context}");
            }
            Verb::MakeRoom => assert_eq!(self.volumes().await, [""; 0], "{context}"),
            Verb::Import | Verb::Pull | Verb::Sweep => {}
        }
        let more = usize::from(matches!(verb, Verb::Export | Verb::Push | Verb::Import | Verb::Pull));
        let expected = ground.snapshots.len() + more - usize::from(verb == Verb::MakeRoom);
        let there = self.snapshots().await;
        assert_eq!((there.len(), &there), (expected, &self.on_disk("snapshots")), "{context}");
        assert_eq!(self.client.clean_up(true).await.unwrap().layers, Vec::<String>::new(), "{context}");
        self.check_alive(context).await;
        for snapshot in there {
            self.check_fork(&snapshot, &ground.mark, context).await;
        }
    }

    /// With the program, as somebody would; a file that a shell redirects to is the shell's, and must be refused if it is half.
    fn export(&self) -> Result<(), String> {
        let program = |to: Stdio, file: Option<&std::path::Path>| {
            Command::new(self.server.program())
                .args(["snapshot", "export", &self.kept.id])
                .args(file)
                .args(["--url", &self.server.url, "--key-file"])
                .arg(self.server.scope.data_dir.join("first-key"))
                .stdout(to)
                .stderr(Stdio::piped())
                .output()
                .unwrap()
        };
        let into = self.outside.path().join(EXPORT);
        let done = program(Stdio::null(), Some(&into));
        if done.status.success() {
            return Ok(());
        }
        let redirected = self.outside.path().join("redirected");
        let same = program(File::create(&redirected).unwrap().into(), None);
        let words = String::from_utf8_lossy(&same.stderr).into_owned();
        assert!(!same.status.success() && words.contains("No space left on device"), "{words}");
        fs::remove_file(redirected).unwrap();
        Err(String::from_utf8_lossy(&done.stderr).into_owned())
    }

    /// A layer that nothing needs any more.
    async fn leave_a_layer(&self) {
        let layers: Vec<_> =
            fs::read_dir(self.server.scope.data_dir.join("pool/layers")).unwrap().map(|entry| entry.unwrap().path()).collect();
        let layers: Vec<_> = layers.into_iter().map(|layer| layer.join("fs")).collect();
        let scratch = tempfile::tempdir().unwrap();
        let archive = small_root(&layers, scratch.path(), &[("etc/unused", self.kept.id.as_str())]).unwrap();
        let lines = self.client.import_template("unused", fs::read(archive).unwrap(), false).await.unwrap();
        let lines: Vec<BuildLine> = lines.try_collect().await.unwrap();
        assert!(lines.iter().any(|line| matches!(line, BuildLine::Done { .. })), "{lines:?}");
        self.client.remove_template("unused", false).await.unwrap();
    }

    async fn snapshots(&self) -> BTreeSet<String> {
        self.client.snapshots(&Default::default()).await.unwrap().snapshots.into_iter().map(|snapshot| snapshot.id).collect()
    }

    async fn volumes(&self) -> Vec<String> {
        let mut names: Vec<String> = self.client.volumes(None).await.unwrap().volumes.into_iter().map(|volume| volume.name).collect();
        names.sort();
        names
    }

    /// What is in a directory of the server's.
    fn on_disk(&self, directory: &str) -> BTreeSet<String> {
        names(&self.server.scope.data_dir.join(directory))
    }

    fn exported(&self) -> BTreeSet<String> {
        let mut there = names(self.outside.path());
        for other in ["ballast", "blobs", "lost+found"] {
            there.remove(other);
        }
        there
    }

    /// All blobs, those that are half there included.
    fn blobs(&self) -> BTreeSet<String> {
        let root = self.outside.path().join("blobs");
        let (mut found, mut ahead) = (BTreeSet::new(), vec![root.clone()]);
        while let Some(directory) = ahead.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    ahead.push(entry.path());
                } else {
                    found.insert(entry.path().strip_prefix(&root).unwrap().display().to_string());
                }
            }
        }
        found
    }
}

fn names(directory: &std::path::Path) -> BTreeSet<String> {
    fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn told(error: &ClientError) -> String {
    match error.problem() {
        Some(problem) => format!("{}: {}", problem.code, problem.detail),
        None => format!("no answer: {error:?}"),
    }
}
