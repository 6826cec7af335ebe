//! One connection, nobody else there: what a request costs by itself.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use belljar_client::{Client, ClientError, CreateSandbox, NewFile, StartProcess};
use belljar_testkit::{ServerProcess, path, pattern};
use belljar_types::{OutputEvent, SandboxId, Termination};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};

use crate::times::Times;

const COMMANDS: usize = 200;
/// Turns, and creates in each of them, by class.
const TURNS: usize = 4;
const CREATES: [(&str, usize); 2] = [("container", 20), ("gvisor", 6)];

pub(crate) fn request(class: &str) -> CreateSandbox {
    CreateSandbox { isolation: Some(class.to_owned()), lease_seconds: Some(600), ..CreateSandbox::default() }
}

/// Runs `/bin/true` to its end and reads that it has ended.
pub(crate) async fn run_true(client: &Client, id: &SandboxId) -> Result<(), ClientError> {
    let mut output = client.start_attached(id, &StartProcess::new(["/bin/true"])).await?;
    while let Some(event) = output.next().await {
        if let Some(OutputEvent::Exit(exit)) = event? {
            assert_eq!(exit.termination, Termination::Exited(0));
            return Ok(());
        }
    }
    Err(ClientError::CutShort { url: client.url().to_owned() })
}

pub(crate) async fn read_file(client: &Client, id: &SandboxId, file: &str) -> Result<Bytes, ClientError> {
    let pieces: Vec<Bytes> = client.read_file(id, &path(file), None).await?.pieces().try_collect().await?;
    Ok(Bytes::from(pieces.concat()))
}

/// Commands and small files, one after the other.
pub(crate) async fn commands(server: &ServerProcess, times: &mut Times) {
    let client = server.client();
    for (class, count) in [("container", COMMANDS), ("gvisor", COMMANDS / 4)] {
        let sandbox = client.create_sandbox(&request(class), None).await.expect("a sandbox can be made");
        let small = Bytes::from(pattern(4096));
        for round in 0..count {
            let begun = Instant::now();
            run_true(&client, &sandbox.id).await.expect("a command runs");
            // The first ones fill caches.
            if round >= 10 {
                times.add(&format!("{class}: exec /bin/true"), begun);
            }
        }
        for _ in 0..count / 4 {
            let begun = Instant::now();
            let written = client.write_file(&sandbox.id, &path("/home/user/small"), NewFile::default(), small.clone()).await;
            written.expect("a file can be written");
            times.add(&format!("{class}: write 4 KiB"), begun);
            let begun = Instant::now();
            assert!(read_file(&client, &sandbox.id, "/home/user/small").await.expect("a file can be read") == small);
            times.add(&format!("{class}: read 4 KiB"), begun);
        }
        client.kill_sandbox(&sandbox.id).await.expect("a sandbox can be killed");
    }
}

/// The server's creates and the engine's own take turns. A data directory has one owner, so the server stands down for the engine.
pub(crate) async fn creates_in_turns(server: &mut ServerProcess, times: &mut Times) {
    for _ in 0..TURNS {
        let client = server.client();
        for (class, count) in CREATES {
            for round in 0..count + 2 {
                let begun = Instant::now();
                let sandbox = client.create_sandbox(&request(class), None).await.expect("a sandbox can be made");
                if round >= 2 {
                    times.add(&format!("{class}: create over HTTP"), begun);
                }
                client.kill_sandbox(&sandbox.id).await.expect("a sandbox can be killed");
            }
        }
        assert!(server.stop().success(), "{}", server.last_words());
        for (class, count) in CREATES {
            for took in by_the_engine(class, count + 2).into_iter().skip(2) {
                times.push(&format!("{class}: create by the engine"), took);
            }
        }
        server.restart().await;
    }
}

fn by_the_engine(class: &str, count: usize) -> Vec<Duration> {
    let lab = std::env::current_exe().expect("this program is a file").with_file_name("lab");
    let output = Command::new(lab).args(["time", class, &count.to_string()]).stderr(Stdio::inherit()).output().expect("lab starts");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.parse().ok()).map(Duration::from_micros).collect()
}
