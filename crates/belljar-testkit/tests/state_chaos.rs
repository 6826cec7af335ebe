//! Whoever pauses, takes snapshots, forks and rolls back is shot at a random moment. The sandbox is afterwards running or paused, with its files, and with
//! its memory if that was kept; no promised snapshot is lost, and none that is shown is broken.
//!
//! A quick slice by default, 200 shots with `BELLJAR_FULL=1`, half at each class. The seed is printed; `BELLJAR_SEED` plays it again.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use belljar_testkit::{Census, Dice, scaled};

/// The judge's own files depend on what it had to do, and slots are kept in stock.
const TOLERATED: [(&str, usize); 3] = [("network namespaces", 4), ("interfaces", 4), ("open files of this process", 64)];

fn trial() -> Command {
    Command::new(env!("CARGO_BIN_EXE_state_trial"))
}

/// What the maker said before it was shot.
struct Testament {
    sandbox: String,
    promised: BTreeSet<String>,
    steps: usize,
}

#[test]
fn a_keeper_of_state_shot_at_a_random_moment_breaks_no_promise() {
    let mut dice = Dice::new("state_chaos");
    // What a whole round leaves in the pools is the state to come back to.
    let before = judge("container", &shoot_once("container", Duration::from_millis(500)));
    let (mut steps, mut promised) = (0, 0);
    for round in 0..scaled(8, 200) {
        let (class, longest) = if round % 2 == 0 { ("container", 600) } else { ("gvisor", 4000) };
        let testament = shoot_once(class, Duration::from_millis(dice.below(longest)));
        steps += testament.steps;
        promised += testament.promised.len();
        let after = judge(class, &testament);
        assert_eq!(after.more_than(&before, &TOLERATED), Vec::<String>::new(), "round {round}: {class}");
    }
    println!("{steps} steps were told, {promised} promises were open when their maker was shot");
    assert!(steps > 0, "every maker was shot before it had done anything");
}

/// Starts a maker, waits until it has its sandbox and then `delay` longer, and kills it.
fn shoot_once(class: &str, delay: Duration) -> Testament {
    let mut maker = trial().args(["make", class]).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("the maker starts");
    let mut lines = BufReader::new(maker.stdout.take().expect("its output is piped")).lines();
    let first = lines.next().expect("the maker says something").expect("and says it in text");
    let sandbox = first.strip_prefix("sandbox ").unwrap_or_else(|| panic!("{first}")).to_owned();
    std::thread::sleep(delay);
    assert!(maker.try_wait().expect("the maker can be asked for").is_none(), "the maker failed by itself");
    maker.kill().expect("the maker can be killed");
    maker.wait().expect("and is gone");
    let mut testament = Testament { sandbox, promised: BTreeSet::new(), steps: 0 };
    for line in lines.map_while(Result::ok) {
        testament.steps += 1;
        if let Some(snapshot) = line.strip_prefix("promised ") {
            testament.promised.insert(snapshot.to_owned());
        } else if let Some(snapshot) = line.strip_prefix("withdrawn ") {
            testament.promised.remove(snapshot);
        }
    }
    testament
}

/// Holds what was said against what is there, removes everything and counts what remains.
fn judge(class: &str, testament: &Testament) -> Census {
    let output = trial().args(["judge", class, &testament.sandbox]).args(&testament.promised).output().expect("the judge starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{class}, {} steps: {}", testament.steps, String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}
