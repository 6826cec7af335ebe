//! A bucket of an object store as a directory: a file system in user space that runs on the host, beside the sandbox and never inside it.
//!
//! The sandbox sees files. The keys, the endpoint and the protocol stay here, so nothing in the sandbox can read them, send them elsewhere or use
//! them for another bucket.
//!
//! ```text
//!   program ── read, write ──▶ kernel (FUSE) ──▶ Bucket ──▶ object_store ──▶ S3
//!                                                  │
//!                                                  ├ nodes    which inode is which key
//!                                                  ├ drafts   files that are being written, in unnamed files on the host's disk
//!                                                  └ windows  what was read ahead, one piece per open file
//! ```
//!
//! What a bucket cannot do is refused and not played: there are no links, no devices, no owners and no modes, and a directory is where a key has a
//! slash. A file is in the bucket when `close` or `fsync` has returned without an error, whole or as it was before.

mod drafts;
mod error;
mod filesystem;
mod listing;
mod nodes;
mod store;
mod windows;

pub use error::BucketError;
pub use filesystem::{Appearance, Bucket, serve};
