//! The maker of sandboxes is shot at a random moment, and whoever comes after it finds and removes everything from the ids alone.
//!
//! A quick slice by default, 200 shots with `BELLJAR_FULL=1`, half at each class. The seed is printed; `BELLJAR_SEED` plays it again.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use belljar_testkit::{Census, Dice, scaled};

fn lab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_lab"))
}

/// Destroys whatever is there and counts what remains.
fn recover() -> Census {
    let output = lab().arg("recover").output().expect("the recoverer starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "recovery failed: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}

#[test]
fn a_maker_shot_at_a_random_moment_leaves_nothing_behind() {
    let mut dice = Dice::new("chaos");
    // A maker that ran and ended by itself has filled the pools; that is the state to come back to.
    shoot_once("container", Duration::from_millis(1500));
    recover();
    let before = recover();
    println!("before: {before}");
    let mut in_the_middle = 0;
    for round in 0..scaled(16, 200) {
        let (class, longest) = if round % 2 == 0 { ("container", 400) } else { ("gvisor", 2500) };
        let made = shoot_once(class, Duration::from_millis(dice.below(longest)));
        in_the_middle += u64::from(made > 0);
        let after = recover();
        assert_eq!(after.more_than(&before, &[]), Vec::<String>::new(), "round {round}: a {class} maker that had made {made} sandboxes");
    }
    println!("{in_the_middle} makers were shot after their first sandbox, the others before it");
    assert!(in_the_middle > 0, "every maker was shot before it had made anything");
}

/// Starts a maker, waits until it is open for business and then `delay` longer, and kills it. Says how many sandboxes it had announced.
fn shoot_once(class: &str, delay: Duration) -> usize {
    let mut maker = lab().args(["make", class]).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("the maker starts");
    let mut lines = BufReader::new(maker.stdout.take().expect("its output is piped")).lines();
    let first = lines.next().expect("the maker says something").expect("and says it in text");
    assert_eq!(first, "opened");
    std::thread::sleep(delay);
    maker.kill().expect("the maker can be killed");
    maker.wait().expect("and is gone");
    lines.map_while(Result::ok).count()
}
