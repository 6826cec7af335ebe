//! Bodies of requests and answers, and their translation to and from the words of `belljar-types`.
//!
//! Translating from the wire checks everything that the types promise: what comes out of here is a valid value or an [`belljar_types::Invalid`].

mod file;
mod found;
mod process;
mod system;
mod wish;

pub use file::{GetXattr, ListDirectory, PathOnly, ReadFile, Rename, Search, SetMode, SetOwner, SetXattr, Watch, WriteFile};
pub use found::{EventBody, FileBody, HitBody, Made, XattrValue};
pub use process::{
    Ack, Attach, ExitBody, Notice, OutputHeader, ProcessBody, ProcessOnly, Resize, SignalProcess, Start, Taken, Wait, Waited, WriteStdin,
    stream_from_number, stream_number,
};
pub use system::{Connect, Identity, MetricsBody, PortBody, Renew};
pub use wish::{AnswerWish, WishBody};
