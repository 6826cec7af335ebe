//! A sandbox in which nothing happens lets the machine sleep.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use belljar_ports::Runtime;

use crate::machine::{Machine, shell};

const PRECISE: &str = "50000";
const AT_REST: &str = "4000000";
/// On a machine with other things to do; it takes two seconds.
const AT_MOST: Duration = Duration::from_secs(120);
/// Enough wake-ups to count.
const WATCHED: Duration = Duration::from_secs(2);
/// On a machine that has no time to wake anybody there is no difference.
const TRIES: usize = 10;
/// Fewer than this while one watches: a runsc of 2026 or later.
const RESTS_BY_ITSELF: u64 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_sandbox_wakes_the_machine_far_less_often_and_is_precise_again_when_it_is_used() {
    let machine = Machine::with_slots(1).await;
    let id = machine.create().await;
    let sentry = fs::read_to_string(machine.data.join("sandboxes").join(id.as_str()).join("sentry.pid")).unwrap();
    let threads = Path::new("/proc").join(sentry.trim()).join("task");
    if wake_ups(&threads).await < RESTS_BY_ITSELF {
        println!("this runsc needs no help");
        machine.runtime.destroy(&id).await.unwrap();
        return machine.close().await;
    }

    until(&threads, AT_REST).await;
    let mut far_less_often = false;
    for _ in 0..TRIES {
        let at_rest = wake_ups(&threads).await;
        set_all(&threads, PRECISE);
        let precise = wake_ups(&threads).await;
        set_all(&threads, AT_REST);
        println!("woken in {WATCHED:?}: {at_rest} times at rest, {precise} times without");
        far_less_often = at_rest * 2 < precise;
        if far_less_often {
            break;
        }
    }
    assert!(far_less_often);

    let guest = machine.runtime.guest(&id).await.unwrap();
    assert_eq!(shell(&*guest, "echo still here").await.stdout, "still here\n");
    while slacks(&threads) != [PRECISE] {
        machine.runtime.guest(&id).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    until(&threads, AT_REST).await;
    machine.runtime.destroy(&id).await.unwrap();
    machine.close().await;
}

/// Waits until every thread of the sentry has it.
async fn until(threads: &Path, slack: &str) {
    let start = Instant::now();
    while slacks(threads) != [slack] {
        assert!(start.elapsed() < AT_MOST, "{:?} and not {slack}", slacks(threads));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Which values there are among the threads.
fn slacks(threads: &Path) -> Vec<String> {
    let mut found: Vec<_> = of_each(threads, "timerslack_ns").iter().map(|value| value.trim().to_owned()).collect();
    found.sort();
    found.dedup();
    found
}

/// How often its threads were woken while one watched.
async fn wake_ups(threads: &Path) -> u64 {
    let before = switches(threads);
    tokio::time::sleep(WATCHED).await;
    switches(threads) - before
}

fn switches(threads: &Path) -> u64 {
    let count = |status: &String| status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok());
    of_each(threads, "status").iter().filter_map(count).sum()
}

fn of_each(threads: &Path, file: &str) -> Vec<String> {
    let names = fs::read_dir(threads).unwrap().map(|thread| thread.unwrap().file_name());
    names.filter_map(|name| fs::read_to_string(Path::new("/proc").join(name).join(file)).ok()).collect()
}

fn set_all(threads: &Path, slack: &str) {
    for thread in fs::read_dir(threads).unwrap() {
        // One that has ended meanwhile needs nothing.
        let _ = fs::write(Path::new("/proc").join(thread.unwrap().file_name()).join("timerslack_ns"), slack);
    }
}
