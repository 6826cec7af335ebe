//! What travels: the bodies of the API, apart from the words of the core, so that either may change without the other.
//!
//! Requests refuse fields they do not know, so that a misspelt one is found. Times are RFC 3339, durations are seconds, sizes are bytes, and
//! bytes that are not UTF-8 have a field of their own that ends in `_base64`.

mod artifact;
mod audit;
mod carrying;
mod code;
mod file;
mod metering;
mod process;
mod project;
mod recording;
mod sandbox;
mod server;
mod snapshot;
mod template;
mod volume;
mod webhook;

pub(crate) use artifact::*;
pub(crate) use audit::*;
pub(crate) use carrying::*;
pub(crate) use code::*;
pub(crate) use file::*;
pub(crate) use metering::*;
pub(crate) use process::*;
pub(crate) use project::*;
pub(crate) use recording::*;
pub(crate) use sandbox::*;
pub(crate) use server::*;
pub(crate) use snapshot::*;
pub(crate) use template::*;
pub(crate) use volume::*;
pub(crate) use webhook::*;
