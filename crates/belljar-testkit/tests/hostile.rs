//! Rogues in the agent's place, in real sandboxes of both classes: the host is neither crashed nor stalled nor bloated by them, says what
//! happened, goes on serving others, and nothing is left of them.
//!
//! The rogue is `hostile/rogue.py`, run by the base template's own interpreter. One test at a time: they count what is on the machine.

#[path = "hostile/liar.rs"]
mod liar;
#[path = "hostile/scene.rs"]
mod scene;
#[path = "hostile/starts.rs"]
mod starts;

/// Makes one test per class of each function.
macro_rules! on_every_class {
    ($($theme:ident :: { $($name:ident),+ $(,)? }),+ $(,)?) => {
        mod container { $($( #[test] fn $name() { belljar_testkit::block_on(super::$theme::$name(belljar_types::IsolationClass::Container)); } )+)+ }
        mod gvisor { $($( #[test] fn $name() { belljar_testkit::block_on(super::$theme::$name(belljar_types::IsolationClass::Gvisor)); } )+)+ }
    };
}

on_every_class! {
    starts::{a_rogue_that_does_not_start_as_an_agent_must_is_told_and_removed},
    liar::{an_agent_that_lies_is_caught_at_every_lie, endless_streams_wait_for_their_reader_and_hold_little},
}
