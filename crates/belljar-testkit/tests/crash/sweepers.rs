//! Those who have layers swept, and those whose programs ask to have files kept, while the server is being killed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use belljar_client::{BuildLine, ClientError, CreateSandbox};
use belljar_testkit::small_root;
use bytes::Bytes;
use futures_util::TryStreamExt;

use crate::insist::Insisting;
use crate::ledger::Ledger;
use crate::movers::unless;
use crate::workers::Worker;

/// In the layer, and nowhere else.
const FILE: &str = "/etc/round";

/// The directories of all layers of a pool.
pub(crate) fn layers(data_dir: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(data_dir.join("pool/layers")).unwrap();
    all.map(|entry| entry.unwrap().path().join("fs")).collect()
}

impl Insisting {
    /// Makes a template of an archive; again, if the server died meanwhile.
    async fn import(&self, name: &str, archive: &Bytes) {
        let import = || async {
            let lines: Vec<BuildLine> = self.client.import_template(name, archive.clone(), false).await?.try_collect().await?;
            // A line that does not come is a server that died.
            if lines.iter().any(|line| matches!(line, BuildLine::Done { .. })) { Ok(true) } else { Ok(false) }
        };
        for _ in 0..200 {
            if self.ask("import a template", import).await {
                return;
            }
        }
        panic!("a template of a few files is never done");
    }
}

impl Worker {
    /// Makes a template and a snapshot on it, removes the template, sweeps, and makes a fork of the snapshot: its layer must be there, since nothing else has it.
    pub(crate) async fn sweep(mut self, layers: Vec<PathBuf>) -> Ledger {
        for round in 0.. {
            if !self.goes_on() {
                break;
            }
            let name = format!("{}-{round}", self.name);
            let content = Bytes::from(format!("{name}\n"));
            let archive = {
                let scratch = tempfile::tempdir().unwrap();
                let archive = small_root(&layers, scratch.path(), &[("etc/round", &format!("{name}\n"))]).unwrap();
                Bytes::from(std::fs::read(archive).unwrap())
            };
            self.client.import(&name, &archive).await;
            let client = self.client.client.clone();
            let request =
                CreateSandbox { template: Some(name.clone()), isolation: Some("container".to_owned()), ..CreateSandbox::default() };
            let made = self.client.ask("create", || client.create_sandbox(&request, Some(&name))).await;
            let taken = self.client.snapshot(&made.id, &name).await;
            self.client.kill(&made.id).await;
            self.ledger.killed.insert(made.id);
            self.client
                .ask("remove a template", || async { unless("template_not_found", client.remove_template(&name, false).await) })
                .await;
            self.client.ask("sweep", || client.clean_up(false)).await;
            for fork in self.client.forks(&taken.id, &name).await {
                assert!(self.client.read(&fork.id, FILE).await == content, "{} has the layer that {} stands on", fork.id, taken.id);
                self.client.kill(&fork.id).await;
                self.ledger.killed.insert(fork.id);
            }
            self.client.remove_snapshot(&taken.id).await;
            self.ledger.sweeps += 1;
        }
        self.ledger
    }

    /// Asks from inside to have files kept: each is kept once, and whoever asked is told its id, however often the server dies meanwhile.
    pub(crate) async fn wish(mut self) -> Ledger {
        let id = self.create(&self.name.clone()).await;
        for round in 0.. {
            if !self.goes_on() {
                break;
            }
            let told = self.client.sh(&id, &format!("cd && echo {round} > wish && belljar-keep wish")).await;
            let artifact = String::from_utf8(told.stdout).unwrap();
            assert_eq!(told.code, 0, "{artifact}");
            let kept = self.ledger.artifacts.entry(id.clone()).or_default();
            assert!(kept.insert(artifact.trim_end().to_owned(), Bytes::from(format!("{round}\n"))).is_none(), "{artifact} was told twice");
        }
        self.ledger
    }
}

impl Ledger {
    /// Every file that was kept is there once, with what it held, and no other.
    pub(crate) async fn compare_artifacts(&self, client: &Insisting) {
        for (sandbox, told) in &self.artifacts {
            let (mut there, mut cursor) = (BTreeSet::new(), None);
            loop {
                let page = client.ask("list artifacts", || client.client.artifacts(Some(sandbox), cursor.as_deref())).await;
                there.extend(page.artifacts.into_iter().map(|artifact| artifact.id));
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(there, told.keys().cloned().collect(), "what programs in {sandbox} had kept, each once");
            for (artifact, content) in told {
                let read = || async {
                    let pieces: Vec<Bytes> = client.client.artifact_content(artifact).await?.try_collect().await?;
                    Ok::<_, ClientError>(pieces.concat())
                };
                assert!(client.ask("read an artifact", read).await == *content, "{artifact} holds what was kept");
                client
                    .ask("remove an artifact", || async { unless("artifact_not_found", client.client.remove_artifact(artifact).await) })
                    .await;
            }
        }
    }
}
