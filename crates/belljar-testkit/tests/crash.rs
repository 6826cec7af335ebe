//! The server is killed at random moments under load, and nothing that it had acknowledged is lost, doubled or left behind.
//!
//! Workers make sandboxes, run processes, feed them, write files, pause, resume, take snapshots, fork, roll back, copy volumes, sweep layers, keep files from inside and kill, all over HTTP, each holding on through every restart as a
//! good client does: the same idempotency key, the same process id, the same offset. Afterwards what they were told is compared with what is.
//! A few kills by default, 200 with `BELLJAR_FULL=1`. The seed is printed; `BELLJAR_SEED` plays the same moments again.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "crash/insist.rs"]
mod insist;
#[path = "crash/keepers.rs"]
mod keepers;
#[path = "crash/ledger.rs"]
mod ledger;
#[path = "crash/movers.rs"]
mod movers;
#[path = "crash/sweepers.rs"]
mod sweepers;
#[path = "crash/workers.rs"]
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use belljar_testkit::{Census, Dice, ServerProcess, block_on, scaled};
use insist::Insisting;
use ledger::Ledger;

const SETTINGS: &str = "
[sandboxes]
allow_shared_kernel = true
default_lease = \"2h\"
orphan_grace = \"1s\"
disk_reserve = \"64MiB\"
max_sandboxes = 60
[sandboxes.default_limits]
memory = \"128MiB\"
disk = \"256MiB\"
";

/// What pools and lazy connections may hold more than at the first count. The files are this process's: its connections to the server.
const POOLED: &[(&str, usize)] = &[("open files of this process", 1000)];

#[test]
fn a_server_killed_at_random_moments_loses_and_doubles_nothing() {
    block_on(async {
        let mut dice = Dice::new("crash");
        let mut server = ServerProcess::start(SETTINGS).await;
        let client = Insisting::new(server.client());
        workers::warm_up(&client).await;
        let before = Census::take(&server.scope);
        println!("before: {before}");

        let over = Arc::new(AtomicBool::new(false));
        let crew = workers::start(&client, &over, &mut dice, &server.scope.data_dir);
        let mut restarts = Vec::new();
        for round in 0..scaled(8, 200) {
            // Mostly in the middle of everything; now and then late enough for a slow machine to finish something.
            let longest = if round % 4 == 3 { 6000 } else { 1200 };
            tokio::time::sleep(Duration::from_millis(dice.below(longest))).await;
            server.kill();
            restarts.push(server.restart().await);
        }
        over.store(true, Ordering::Release);
        let mut ledger = Ledger::default();
        for worker in crew {
            ledger.add(worker.await.unwrap_or_else(|error| panic!("{error}\n{}", server.last_words())));
        }
        restarts.sort_unstable();
        println!("{ledger}; {} kills, restart p50 {:?}, longest {:?}", restarts.len(), restarts[restarts.len() / 2], restarts.last());
        ledger.assert_something_happened();

        // Nobody kills any more; one last start has to know all of it.
        server.kill();
        server.restart().await;
        ledger.compare(&client).await;
        ledger.end_all(&client).await;
        assert_eq!(Census::settle(&before, &server.scope, POOLED).await, Ok(()), "\n{}", server.last_words());
        assert!(server.stop().success(), "a server that is asked to stop does so in good order\n{}", server.last_words());
    });
}
