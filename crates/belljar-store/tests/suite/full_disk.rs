//! A full disk costs the verb that met it, and nothing else: what is there can be read, and writing goes on once there is room.

use std::path::{Path, PathBuf};
use std::process::Command;

use belljar_ports::StoreError;
use belljar_types::{Project, SandboxState, Timestamp};

use crate::bed::{UNBOUNDED, become_state, sandbox};

/// A filesystem of two megabytes, in memory.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        run("mount", &["-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", directory.path().to_str().unwrap()]);
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run("umount", &["--lazy", self.directory.path().to_str().unwrap()]);
    }
}

fn run(program: &str, arguments: &[&str]) {
    assert!(Command::new(program).args(arguments).status().unwrap().success(), "{program} {arguments:?}");
}

fn fill(path: &Path, bytes: usize) {
    std::fs::write(path, vec![0; bytes]).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing_and_is_got_over() {
    let disk = SmallDisk::new();
    fill(&disk.path("ballast"), 1_200_000);
    let url = format!("sqlite:{}", disk.path("store.db").display());
    let store = belljar_store::open(&url).await.unwrap();
    let epoch = store.begin_epoch().await.unwrap();
    let project = Project { id: "first".parse().unwrap(), quota: UNBOUNDED, created_at: Timestamp(1) };
    store.add_project(&project).await.unwrap();

    let mut kept = Vec::new();
    let mut met_full_disk = 0;
    // Big and small ones, so that the disk is met in the middle of a transaction and at its end; twice, with room made in between.
    for round in 0..2 {
        let mut refused = 0;
        for index in 0.. {
            let mut made = sandbox(&project.id);
            made.class_reason = "x".repeat(if index % 3 == 0 { 40_000 } else { 300 });
            made.metadata = [("round".to_owned(), round.to_string())].into();
            match store.reserve(epoch, &made, None).await {
                Ok(_) => kept.push(made),
                Err(StoreError::Full) => refused += 1,
                Err(error) => panic!("{error:?}"),
            }
            if refused == 5 {
                break;
            }
        }
        met_full_disk += refused;
        assert!(matches!(fill_up_and_check(&*store).await, StoreError::Full));
        for made in &kept {
            assert_eq!(store.sandbox(&project.id, &made.id).await.unwrap().as_ref(), Some(made));
        }
        assert_eq!(store.unended().await.unwrap().0.len(), kept.len(), "what was refused is not there");
        fill(&disk.path("ballast"), 600_000 * (1 - round));
        store.check().await.unwrap();
    }
    assert!(met_full_disk >= 10 && !kept.is_empty());

    // Quota counts exactly what was kept.
    let count = u32::try_from(kept.len()).unwrap();
    let mut last = kept.pop().unwrap();
    let quota = belljar_types::Quota { sandboxes: count, ..UNBOUNDED };
    store.set_quota(&project.id, &quota).await.unwrap();
    assert!(matches!(store.reserve(epoch, &sandbox(&project.id), None).await, Err(StoreError::OverQuota { .. })));
    become_state(&mut last, SandboxState::Failed);
    store.record(epoch, SandboxState::Creating, last.execution(), &last).await.unwrap();
    store.reserve(epoch, &sandbox(&project.id), None).await.unwrap();
    store.close().await;
}

/// The log has room left in pages that are written already; a health check that goes on meets the end of it.
async fn fill_up_and_check(store: &dyn belljar_ports::Store) -> StoreError {
    loop {
        if let Err(error) = store.check().await {
            return error;
        }
    }
}
