//! Whoever pauses, takes snapshots, forks, rolls back, makes layers and sweeps them is shot at a random moment. The sandbox is afterwards running or paused, with its files, and
//! with its memory if that was kept; no promised snapshot is lost, none that is shown is broken, and no layer that one stands on was swept.
//!
//! A quick slice by default, 240 shots with `BELLJAR_FULL=1`, half at each class and half at each maker; then every step must have been hit. Sweeps are short, so every
//! fourth shot waits for one. The seed is printed; `BELLJAR_SEED` plays it again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use belljar_testkit::{Census, Dice, full, scaled};

/// The judge's own files depend on what it had to do, and slots are kept in stock.
const TOLERATED: [(&str, usize); 3] = [("network namespaces", 4), ("interfaces", 4), ("open files of this process", 64)];
/// Steps that a full run must have cut short.
const TO_BE_HIT: [&str; 7] = ["pause", "resume", "snapshot", "fork", "rollback", "layer", "gc"];

fn trial() -> Command {
    Command::new(env!("CARGO_BIN_EXE_state_trial"))
}

/// What the maker said before it was shot.
struct Testament {
    sandbox: String,
    promised: BTreeSet<String>,
    steps: usize,
    /// The step that was cut short, if one was.
    under_way: Option<String>,
}

#[test]
fn a_keeper_of_state_shot_at_a_random_moment_breaks_no_promise() {
    let mut dice = Dice::new("state_chaos");
    // What a whole round leaves in the pools is the state to come back to.
    let (layers, before) = judge("container", &shoot_once("state", "container", Duration::from_millis(500)));
    let (mut steps, mut promised, mut hit) = (0, 0, BTreeMap::<String, usize>::new());
    for round in 0..scaled(8, 240) {
        let (class, longest) = if round % 2 == 0 { ("container", 600) } else { ("gvisor", 4000) };
        let act = if round % 4 < 2 { "state" } else { "layers" };
        let testament = if round % 8 > 5 {
            shoot_at("doing gc", act, class, Duration::from_micros(dice.below(40_000)))
        } else {
            shoot_once(act, class, Duration::from_millis(dice.below(longest)))
        };
        steps += testament.steps;
        promised += testament.promised.len();
        *hit.entry(testament.under_way.clone().unwrap_or_else(|| "between two steps".to_owned())).or_default() += 1;
        let (layers_now, after) = judge(class, &testament);
        let context = format!("round {round}: {act}, {class}, {:?}", testament.under_way);
        assert_eq!(after.more_than(&before, &TOLERATED), Vec::<String>::new(), "{context}");
        assert_eq!(layers_now, layers, "{context}: layers that nobody needs are left");
    }
    println!("{steps} steps were told, {promised} promises were open when their maker was shot; cut short: {hit:?}");
    assert!(steps > 0, "every maker was shot before it had done anything");
    let missed: Vec<&str> = TO_BE_HIT.into_iter().filter(|step| !hit.contains_key(*step)).collect();
    assert!(!full() || missed.is_empty(), "no shot hit {missed:?}");
}

/// Starts a maker, waits until it has its sandbox and then `delay` longer, and kills it.
fn shoot_once(act: &str, class: &str, delay: Duration) -> Testament {
    shoot(act, class, delay, |_| true)
}

/// The same, but waits until the maker has said `what` for the second time: the first sweep finds nothing.
fn shoot_at(what: &str, act: &str, class: &str, delay: Duration) -> Testament {
    let mut times = 0;
    shoot(act, class, delay, |line| {
        times += usize::from(line == what);
        times == 2
    })
}

fn shoot(act: &str, class: &str, delay: Duration, mut is_time: impl FnMut(&str) -> bool) -> Testament {
    let mut maker = trial().args(["make", act, class]).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("the maker starts");
    let mut lines = BufReader::new(maker.stdout.take().expect("its output is piped")).lines();
    let next = |lines: &mut std::io::Lines<BufReader<ChildStdout>>| lines.next().expect("the maker goes on").expect("it speaks in text");
    let first = next(&mut lines);
    let sandbox = first.strip_prefix("sandbox ").unwrap_or_else(|| panic!("{first}")).to_owned();
    let mut said = Vec::new();
    if !is_time(&first) {
        said.push(next(&mut lines));
        while !is_time(said.last().expect("it was just put there")) {
            said.push(next(&mut lines));
        }
    }
    std::thread::sleep(delay);
    assert!(maker.try_wait().expect("the maker can be asked for").is_none(), "the maker failed by itself");
    maker.kill().expect("the maker can be killed");
    maker.wait().expect("and is gone");
    let mut testament = Testament { sandbox, promised: BTreeSet::new(), steps: 0, under_way: None };
    for line in said.into_iter().chain(lines.map_while(Result::ok)) {
        match line.split_once(' ') {
            Some(("promised", snapshot)) => drop(testament.promised.insert(snapshot.to_owned())),
            Some(("withdrawn", snapshot)) => drop(testament.promised.remove(snapshot)),
            Some(("doing", step)) => testament.under_way = Some(step.to_owned()),
            Some(("done", _)) => {
                testament.under_way = None;
                testament.steps += 1;
            }
            _ => panic!("{line}"),
        }
    }
    testament
}

/// Holds what was said against what is there, removes everything and counts what remains.
fn judge(class: &str, testament: &Testament) -> (usize, Census) {
    let output = trial().args(["judge", class, &testament.sandbox]).args(&testament.promised).output().expect("the judge starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let context = format!("{class}, {} steps, {:?}", testament.steps, testament.under_way);
    assert!(output.status.success(), "{context}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}
