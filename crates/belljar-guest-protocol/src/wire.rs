//! Bodies of requests and answers, and their translation to and from the words of `belljar-types`.
//!
//! Translating from the wire checks everything that the types promise: what comes out of here is a valid value or an [`belljar_types::Invalid`].

mod file;
mod process;
mod system;

pub use file::{
    EventBody, FileBody, GetXattr, HitBody, ListDirectory, Made, PathOnly, ReadFile, Rename, Search, SetMode, SetOwner, SetXattr, Watch,
    WriteFile, XattrValue,
};
pub use process::{
    Ack, Attach, ExitBody, Notice, OutputHeader, ProcessBody, ProcessOnly, Resize, SignalProcess, Start, Taken, Wait, Waited, WriteStdin,
    stream_from_number, stream_number,
};
pub use system::{Connect, Identity, MetricsBody, PortBody, Renew};
