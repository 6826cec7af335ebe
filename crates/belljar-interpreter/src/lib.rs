//! Code that keeps its state: contexts of many languages in a sandbox, and what running something in them gives back.
//!
//! ```text
//!  a front ─► Interpreter ─► Session::connect ─► belljar-kernels (in the sandbox) ─► kernels: Python, JavaScript, R, …
//!              typed events ◄─ lines of JSON ◄──┘
//! ```
//!
//! No vendor's protocol is here or in the sandbox: fronts translate. The program inside comes with the template
//! (`templates/code-interpreter-v1`) and is started at first use if the template did not start it. Everything that it says is hostile: lines are
//! bounded, parsed into the types of [`Event`], and whatever breaks the rules ends that connection.

mod error;
mod event;
mod interpreter;
mod line;
mod program;
mod request;

pub use error::{InterpreterError, Refusal};
pub use event::{Event, Formats};
pub use interpreter::{Execution, Interpreter};
pub use request::{Context, ContextId, Run, Where};

/// MIME type of a table as columns: an object of lists.
pub const DATA: &str = "application/vnd.belljar.data+json";
/// MIME type of the numbers behind a chart.
pub const CHART: &str = "application/vnd.belljar.chart+json";
