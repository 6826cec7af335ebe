//! Many connections at once, each living whole lives of sandboxes, while somebody watches the server's memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use belljar_client::{Client, ClientError, NewFile};
use belljar_testkit::{ServerProcess, path, pattern};
use bytes::Bytes;

use crate::alone::{read_file, request, run_true};
use crate::times::Times;

const COMMANDS: usize = 3;
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What came of it.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) times: Times,
    /// Failures by their words, and how often.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Requests that were answered "busy" and made again when told to.
    pub(crate) busy: u64,
    memory: Vec<u64>,
}

impl Outcome {
    fn merge(&mut self, other: Self) {
        self.times.merge(other.times);
        self.busy += other.busy;
        for (words, count) in other.errors {
            *self.errors.entry(words).or_default() += count;
        }
    }

    /// The server's resident memory in each third of the time, in kilobytes.
    pub(crate) fn memory_thirds(&self) -> Vec<u64> {
        let mean = |third: &[u64]| third.iter().sum::<u64>() / third.len().max(1) as u64;
        self.memory.chunks(self.memory.len().div_ceil(3).max(1)).map(mean).collect()
    }

    pub(crate) fn memory_growth(&self) -> f64 {
        match self.memory_thirds()[..] {
            [_, middle, last] if middle > 0 => last as f64 / middle as f64,
            _ => f64::NAN,
        }
    }
}

/// Every fifth connection uses gVisor, the others containers.
pub(crate) async fn run(server: &ServerProcess, connections: usize, duration: Duration) -> Outcome {
    // Setting up a client reads certificates, which takes longer than a request.
    let clients: Vec<Client> = (0..connections).map(|_| server.client()).collect();
    let until = Instant::now() + duration;
    let user = |(number, client)| tokio::spawn(use_it(client, if number % 5 == 0 { "gvisor" } else { "container" }, until));
    let users: Vec<_> = clients.into_iter().enumerate().map(user).collect();
    let mut outcome = Outcome::default();
    while Instant::now() < until {
        outcome.memory.extend(resident(server.pid()));
        tokio::time::sleep(LOOK_EVERY).await;
    }
    for user in users {
        outcome.merge(user.await.expect("a user does not panic"));
    }
    outcome
}

async fn use_it(client: Client, class: &'static str, until: Instant) -> Outcome {
    let mut outcome = Outcome::default();
    while Instant::now() < until {
        if let Err(error) = a_life(&client, class, &mut outcome).await {
            let words = match error.problem() {
                Some(problem) => format!("{class}: {}: {}", problem.code, problem.detail),
                None => format!("{class}: {error}"),
            };
            *outcome.errors.entry(words).or_default() += 1;
        }
    }
    outcome
}

async fn a_life(client: &Client, class: &str, outcome: &mut Outcome) -> Result<(), ClientError> {
    let (small, large) = (Bytes::from(pattern(4096)), Bytes::from(pattern(1 << 20)));
    let name = |verb: &str| format!("{class}: {verb}");
    let sandbox = loop {
        let begun = Instant::now();
        match client.create_sandbox(&request(class), None).await {
            Ok(sandbox) => {
                outcome.times.add(&name("create"), begun);
                break sandbox;
            }
            Err(error) => match error.problem() {
                Some(problem) if problem.code == "busy" => {
                    outcome.busy += 1;
                    tokio::time::sleep(Duration::from_secs(problem.retry_after.unwrap_or(1))).await;
                }
                _ => return Err(error),
            },
        }
    };
    for _ in 0..COMMANDS {
        let begun = Instant::now();
        run_true(client, &sandbox.id).await?;
        outcome.times.add(&name("exec /bin/true"), begun);
    }
    for (content, size) in [(&small, "4 KiB"), (&large, "1 MiB")] {
        let begun = Instant::now();
        client.write_file(&sandbox.id, &path("/home/user/file"), NewFile::default(), content.clone()).await?;
        outcome.times.add(&name(&format!("write {size}")), begun);
        let begun = Instant::now();
        let read = read_file(client, &sandbox.id, "/home/user/file").await?;
        outcome.times.add(&name(&format!("read {size}")), begun);
        if read != *content {
            *outcome.errors.entry(format!("{class}: a file of {size} was read other than it was written")).or_default() += 1;
        }
    }
    let begun = Instant::now();
    client.kill_sandbox(&sandbox.id).await?;
    outcome.times.add(&name("kill"), begun);
    Ok(())
}

fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()
}
