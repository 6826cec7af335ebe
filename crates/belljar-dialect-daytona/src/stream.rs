//! Answers that go on: the parts of a form, and what goes over WebSockets.

mod mixed;
mod parts;
mod socket;
mod terminal;

pub(crate) use mixed::{MOST_OUTPUT, Mixed, marked};
pub(crate) use parts::{PART_END, part_head, part_of_error};
pub(crate) use socket::{Closing, accept, close};
pub(crate) use terminal::attached;
