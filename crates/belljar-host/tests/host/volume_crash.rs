//! The owner of a host is killed while it makes, copies and removes volumes: what is found is whole, and what was acknowledged is found.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use belljar_host::Host;
use belljar_ports::Volumes;
use belljar_types::VolumeId;

use crate::scene::{Scene, config};

const DIRECTORY: &str = "BELLJAR_TEST_VOLUME_CRASH_DIRECTORY";
const ROUNDS: u32 = 40;
const FILES: usize = 20;

fn say(word: &str, id: &VolumeId) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word} {id}").unwrap();
    out.flush().unwrap();
}

fn files_of(directory: &Path, id: &VolumeId) -> usize {
    std::fs::read_dir(directory.join("pool/volumes").join(id.as_str())).map_or(0, Iterator::count)
}

/// Not a test: what the test below starts and kills.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the test that kills it"]
async fn an_owner_that_copies_volumes() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let host = Host::open(config(&directory)).await.unwrap();
    let volumes = host.volumes();
    println!("\nup");
    let source = volumes.inventory().await.unwrap().into_iter().find(|id| files_of(&directory, id) == FILES).unwrap();
    for round in 0..100_000 {
        let (copy, made) = (VolumeId::random(), VolumeId::random());
        volumes.copy(&source, &copy, 8 << 20, round % 2 == 0).await.unwrap();
        say("copied", &copy);
        volumes.make(&made, 8 << 20).await.unwrap();
        say("made", &made);
        say("removing", &copy);
        volumes.remove(&copy).await.unwrap();
        say("removing", &made);
        volumes.remove(&made).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_whole_or_not_there_whenever_its_maker_is_killed() {
    let mut scene = Scene::new().await;
    let source = VolumeId::random();
    scene.host.volumes().make(&source, 8 << 20).await.unwrap();
    for number in 0..FILES {
        std::fs::write(scene.directory.join("pool/volumes").join(source.as_str()).join(number.to_string()), "content").unwrap();
    }
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let Scene { host, directory, _sweep, _temporary } = scene;
        drop(host);
        let told = kill_an_owner(&directory, round);
        let host = Host::open(config(&directory)).await.unwrap();
        let volumes = host.volumes();
        let found: BTreeSet<VolumeId> = volumes.inventory().await.unwrap().into_iter().collect();
        assert!(found.contains(&source), "round {round}: a volume that nobody touched is gone");
        let on_disk = std::fs::read_dir(directory.join("pool/volumes")).unwrap().count();
        assert_eq!(on_disk, found.len(), "round {round}: something half made is left");
        let (mut there, mut going) = (BTreeSet::new(), BTreeSet::new());
        for (word, id) in &told {
            match word.as_str() {
                "removing" => going.insert(id.clone()),
                _ => there.insert(id.clone()),
            };
        }
        acknowledged += there.len();
        for id in there.difference(&going) {
            assert!(found.contains(id), "round {round}: {id} was acknowledged and is gone");
        }
        for id in found.iter().filter(|id| **id != source) {
            let files = files_of(&directory, id);
            let copied = told.contains(&("copied".to_owned(), id.clone()));
            assert!(files == FILES || (files == 0 && !copied), "round {round}: {id} has {files} files");
            volumes.remove(id).await.unwrap();
        }
        scene = Scene { host, directory, _sweep, _temporary };
    }
    assert!(acknowledged > 0, "no round got as far as a copy");
    scene.host.volumes().remove(&source).await.unwrap();
    scene.close().await;
}

/// What it said before it died.
fn kill_an_owner(directory: &Path, round: u32) -> Vec<(String, VolumeId)> {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "volume_crash::an_owner_that_copies_volumes", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "up"), "the owner never came up");
    std::thread::sleep(Duration::from_millis(u64::from(round) * 7919 % 250));
    owner.kill().unwrap();
    owner.wait().unwrap();
    let told = lines.map_while(Result::ok).filter_map(|line| {
        let (word, id) = line.split_once(' ')?;
        Some((word.to_owned(), id.parse().ok()?))
    });
    told.collect()
}
