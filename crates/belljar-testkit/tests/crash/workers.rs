//! Those who use the server while it is being killed. Each does one kind of thing over and over and remembers what it was told.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use belljar_client::StartProcess;
use belljar_testkit::{Dice, pattern};
use belljar_types::{OutputEvent, PtySize, SandboxId};
use bytes::Bytes;
use tokio::task::JoinHandle;

use crate::insist::{Insisting, Told, read_to_end};
use crate::ledger::{Ledger, STARTS};
use crate::sweepers::layers;

/// Fills pools and caches, so that what they keep is no leak.
pub(crate) async fn warm_up(client: &Insisting) {
    for (class, at_once) in [("container", 4), ("gvisor", 2)] {
        let made = (0..at_once).map(|at| async move {
            let made = client.create(class, &format!("warm-{class}-{at}")).await;
            client.sh(&made.id, "true").await;
            client.kill(&made.id).await;
        });
        futures_util::future::join_all(made).await;
    }
}

/// One worker's means.
pub(crate) struct Worker {
    pub(crate) client: Insisting,
    over: Arc<AtomicBool>,
    pub(crate) name: String,
    class: &'static str,
    pub(crate) dice: Dice,
    pub(crate) ledger: Ledger,
}

/// Starts all of them.
pub(crate) fn start(client: &Insisting, over: &Arc<AtomicBool>, dice: &mut Dice, data_dir: &Path) -> Vec<JoinHandle<Ledger>> {
    let mut worker = |name: &str, class: &'static str| Worker {
        client: client.clone(),
        over: Arc::clone(over),
        name: format!("{name}-{class}"),
        class,
        dice: Dice::seeded(dice.below(u64::MAX)),
        ledger: Ledger::default(),
    };
    vec![
        tokio::spawn(worker("churn-a", "container").churn()),
        tokio::spawn(worker("churn-b", "container").churn()),
        tokio::spawn(worker("churn", "gvisor").churn()),
        tokio::spawn(worker("talk-a", "container").talk()),
        tokio::spawn(worker("talk-b", "container").talk()),
        tokio::spawn(worker("talk", "gvisor").talk()),
        tokio::spawn(worker("feed", "container").feed()),
        tokio::spawn(worker("feed", "gvisor").feed()),
        tokio::spawn(worker("type", "container").type_into_a_terminal()),
        tokio::spawn(worker("write", "container").write()),
        tokio::spawn(worker("write", "gvisor").write()),
        tokio::spawn(worker("keep", "container").keep()),
        tokio::spawn(worker("keep", "gvisor").keep()),
        tokio::spawn(worker("doze", "container").doze()),
        tokio::spawn(worker("doze", "gvisor").doze()),
        tokio::spawn(worker("copy", "volume").copy()),
        tokio::spawn(worker("wish", "container").wish()),
        tokio::spawn(worker("wish", "gvisor").wish()),
        tokio::spawn(worker("sweep", "container").sweep(layers(data_dir))),
    ]
}

impl Worker {
    pub(crate) fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Acquire)
    }

    pub(crate) async fn create(&mut self, key: &str) -> SandboxId {
        let made = self.client.create(self.class, key).await;
        self.ledger.living.insert(key.to_owned(), (made.id.clone(), self.class.to_owned()));
        made.id
    }

    /// A process that notes its start before anything else.
    fn process(&mut self, sandbox: &SandboxId, script: &str) -> StartProcess {
        let mut process = StartProcess::new(["/bin/sh", "-c", ""]);
        process.argv[2] = format!("echo {} >> {STARTS}; {script}", process.id);
        self.ledger.starts.entry(sandbox.clone()).or_default().insert(process.id.to_string());
        process
    }

    fn check(&mut self, told: &Told, expected: &[u8]) {
        assert_eq!(told.code, 0, "{}", self.name);
        assert!(
            told.stdout == expected,
            "{}: {} bytes came where {} were written; the first {} are right",
            self.name,
            told.stdout.len(),
            expected.len(),
            told.stdout.iter().zip(expected).take_while(|(one, other)| one == other).count()
        );
        self.ledger.processes += 1;
        self.ledger.compared += expected.len() as u64;
    }

    /// Makes sandboxes and kills most of them again.
    async fn churn(mut self) -> Ledger {
        for round in 0.. {
            if !self.goes_on() {
                break;
            }
            let key = format!("{}-{round}", self.name);
            let id = self.create(&key).await;
            if self.dice.below(3) == 0 {
                self.client.sh(&id, "true").await;
            }
            if self.ledger.living.len() > 3 || self.dice.below(2) == 0 {
                let gone = self.client.kill(&id).await;
                assert!(gone.state.has_ended(), "{gone:?}");
                self.ledger.living.remove(&key);
                self.ledger.killed.insert(id);
            }
        }
        self.ledger
    }

    /// Runs processes that write numbered lines for longer than the server lives.
    async fn talk(mut self) -> Ledger {
        let id = self.create(&self.name.clone()).await;
        while self.goes_on() {
            let lines = 50 + self.dice.below(1500);
            let script = format!(
                "i=0; while [ $i -lt {lines} ]; do echo line $i of this process; i=$((i+1)); [ $((i%40)) = 0 ] && sleep 0.03; done; true"
            );
            let process = self.process(&id, &script);
            self.client.start(&id, &process).await;
            let told = self.client.follow(&id, &process.id).await;
            let expected: String = (0..lines).map(|line| format!("line {line} of this process\n")).collect();
            self.check(&told, expected.as_bytes());
        }
        self.ledger
    }

    /// Sends bytes through `cat`, reading what comes back at the same time.
    async fn feed(mut self) -> Ledger {
        let id = self.create(&self.name.clone()).await;
        while self.goes_on() {
            let length = 1 + self.dice.below(3_000_000);
            let bytes = Bytes::from(pattern(usize::try_from(length).unwrap()));
            let mut process = self.process(&id, "exec cat");
            process.stdin = true;
            self.client.start(&id, &process).await;
            let mut feeder = self.client.feeder(&id, &process.id);
            let reading = tokio::spawn(read_to_end(self.client.follower(&id, &process.id)));
            let mut rest = bytes.clone();
            while !rest.is_empty() {
                let piece = rest.split_to(usize::try_from(1 + self.dice.below(200_000)).unwrap().min(rest.len()));
                assert!(feeder.write(piece).await.unwrap(), "cat takes what it gets");
            }
            feeder.close().await.unwrap();
            let told = reading.await.unwrap();
            self.check(&told, &bytes);
        }
        self.ledger
    }

    /// Types into a terminal that shows what is typed, once.
    async fn type_into_a_terminal(mut self) -> Ledger {
        let id = self.create(&self.name.clone()).await;
        while self.goes_on() {
            let typed: Vec<u8> = (0..200 + self.dice.below(800)).flat_map(|line| format!("{line}\r").into_bytes()).collect();
            let mut process = self.process(&id, &format!("stty raw -echo; printf ready; exec head -c {}", typed.len()));
            process.stdin = true;
            process.pty = Some(PtySize { columns: 80, rows: 24 });
            self.client.start(&id, &process).await;
            let mut follower = self.client.follower(&id, &process.id);
            let first = follower.next().await.unwrap();
            assert!(
                matches!(&first, Some(OutputEvent::Data { bytes, .. }) if b"ready".starts_with(&bytes[..bytes.len().min(5)])),
                "{first:?}"
            );
            let mut feeder = self.client.feeder(&id, &process.id);
            for piece in typed.chunks(97) {
                assert!(feeder.write(Bytes::copy_from_slice(piece)).await.unwrap());
            }
            let told = self.client.follow(&id, &process.id).await;
            self.check(&told, &[b"ready", typed.as_slice()].concat());
        }
        self.ledger
    }

    /// Writes files, and reads some of them back.
    async fn write(mut self) -> Ledger {
        let id = self.create(&self.name.clone()).await;
        while self.goes_on() {
            let file = format!("/home/user/file-{}", self.dice.below(20));
            let length = usize::try_from(self.dice.below(400_000)).unwrap();
            let from = usize::try_from(self.dice.below(1000)).unwrap();
            let content = Bytes::from(pattern(length + from)).slice(from..);
            self.client.write(&id, &file, &content).await;
            self.ledger.files.insert((id.clone(), file.clone()), content.clone());
            if self.dice.below(4) == 0 {
                assert!(self.client.read(&id, &file).await == content, "{file} of {id} reads as it was written");
            }
        }
        self.ledger
    }
}
