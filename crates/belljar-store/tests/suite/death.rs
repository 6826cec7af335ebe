//! Acknowledged is kept: a process that writes is killed at any moment, and everything it said it had written is there.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use belljar_types::{SandboxId, SandboxState};

use crate::bed::{Bed, become_state, sandbox};

const URL: &str = "BELLJAR_STORE_WRITER_URL";

pub(crate) async fn what_was_acknowledged_survives_being_killed(bed: &Bed) {
    let full = std::env::var_os("BELLJAR_FULL").is_some_and(|value| value != "0");
    let mut chance: u64 =
        std::env::var("BELLJAR_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| u64::from(std::process::id()));
    #[expect(clippy::print_stdout, reason = "the harness shows it beside the failure")]
    {
        println!("BELLJAR_SEED={chance}");
    }
    let mut total = 0;
    for _ in 0..if full { 50 } else { 6 } {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (url, patience) = (bed.url.clone(), (chance >> 33) % 120);
        let said = tokio::task::spawn_blocking(move || kill_after(&url, patience)).await.unwrap();
        assert!(said.len() as u64 > patience);
        total += said.len();
        for (id, state) in said {
            let found = bed.store.sandbox(&bed.project, &id).await.unwrap();
            let found = found.unwrap_or_else(|| panic!("{id} was acknowledged as {state} and is gone")).state;
            // The next step may have been written and not been said.
            assert!(found == state || found == SandboxState::Running, "{id} was acknowledged as {state} and is {found}");
        }
    }
    let (live, unreadable) = bed.store.unended().await.unwrap();
    assert!(live.len() >= total / 2 && unreadable.is_empty());
    bed.store.check().await.unwrap();
}

/// What a writer acknowledged that was killed some time after `patience` acknowledgements.
fn kill_after(url: &str, patience: u64) -> Vec<(SandboxId, SandboxState)> {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "death::writes_until_it_is_killed", "--ignored", "--nocapture"])
        .env(URL, url)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(writer.stdout.take().unwrap());
    let mut said = String::new();
    let mut count = 0;
    while count <= patience {
        let start = said.len();
        assert_ne!(output.read_line(&mut said).unwrap(), 0, "the writer ended by itself");
        count += u64::from(said[start..].contains("wrote "));
    }
    writer.kill().unwrap();
    // What it still said before its death counts; half a line does not.
    output.read_to_string(&mut said).unwrap();
    writer.wait().unwrap();
    let whole_lines = said.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let wrote = whole_lines.lines().filter_map(|line| line.split_once("wrote "));
    wrote
        .map(|(_, words)| {
            let (id, state) = words.split_once(' ').unwrap();
            (id.parse().unwrap(), state.parse().unwrap())
        })
        .collect()
}

#[tokio::test]
#[ignore = "is what the test above starts and kills"]
async fn writes_until_it_is_killed() {
    let store = belljar_store::open(&std::env::var(URL).unwrap()).await.unwrap();
    let epoch = store.begin_epoch().await.unwrap();
    loop {
        let mut made = sandbox(&"first".parse().unwrap());
        store.reserve(epoch, &made, None).await.unwrap();
        println!("wrote {} {}", made.id, made.state);
        become_state(&mut made, SandboxState::Running);
        store.record(epoch, SandboxState::Creating, made.execution(), &made).await.unwrap();
        println!("wrote {} {}", made.id, made.state);
    }
}
