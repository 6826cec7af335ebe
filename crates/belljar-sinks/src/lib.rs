//! The audit log, carried on to where others keep it.
//!
//! ```text
//!   log on disk ─► follower of one sink: read after its mark ─► file | webhook | OTLP ─► taken? ─► mark on disk
//!                                              ▲                                   └ no: again, later
//! ```
//! The log itself is the queue: nothing is kept twice, a sink that is away for a week costs no memory, and a sink that is added gets everything
//! from the beginning. The mark is written after what it covers was taken, so that a `kill -9` at any moment repeats events and loses none; who
//! receives them knows a repetition by its project and number.

mod file;
mod follow;
mod hook;
mod marks;
mod otlp;
mod sink;

pub use follow::follow;
pub use sink::{Format, Sink, SinkError, Way};
