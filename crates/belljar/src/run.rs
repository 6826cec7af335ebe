//! `belljar run`: one command in a throw-away sandbox on this machine. All of it is the guard's; it needs no server and no adapters.

pub(crate) use belljar_guard::Arguments;
pub(crate) use belljar_guard::arguments::run;
