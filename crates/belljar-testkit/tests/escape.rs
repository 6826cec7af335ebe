//! Nobody gets out: every attempt of `tests/escape` on every class that runs here, as user and as root, and races on the host's file verbs.
//!
//! `tests/escape/control.py` shows that each attempt works where nothing stops it; here each must say what stopped it. An attempt that
//! breaks, says nothing or escapes fails the suite, and so does anything that the host notices on its own side.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test says what it saw, and stops at the first surprise")]

#[path = "escape/attempt.rs"]
mod attempt;
#[path = "escape/checkers.rs"]
mod checkers;
#[path = "escape/races.rs"]
mod races;
#[path = "escape/scene.rs"]
mod scene;
#[path = "escape/target.rs"]
mod target;

use std::sync::{Mutex, PoisonError};

use belljar_testkit::block_on;
use belljar_types::IsolationClass;

/// Each test looks at the whole machine for what its own attempts may have done.
fn one_at_a_time(test: impl Future<Output = ()>) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    block_on(test);
}

#[test]
fn nobody_gets_out_of_a_container() {
    one_at_a_time(attempt::all(IsolationClass::Container));
}

#[test]
fn nobody_gets_out_of_gvisor() {
    one_at_a_time(attempt::all(IsolationClass::Gvisor));
}

#[test]
fn no_race_makes_the_host_touch_its_own_files_for_a_container() {
    one_at_a_time(races::all(IsolationClass::Container));
}

#[test]
fn no_race_makes_the_host_touch_its_own_files_for_gvisor() {
    one_at_a_time(races::all(IsolationClass::Gvisor));
}

#[test]
fn public_checkers_find_nothing_in_a_container() {
    one_at_a_time(checkers::all(IsolationClass::Container));
}

#[test]
fn public_checkers_find_nothing_in_gvisor() {
    one_at_a_time(checkers::all(IsolationClass::Gvisor));
}
