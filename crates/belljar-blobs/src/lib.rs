//! [`belljar_ports::Blobs`] in a directory of this host, or in a bucket of anything that speaks S3.
//!
//! ```text
//!   put ─▶ hashed on its way, in parts of one size ─▶ directory: <key>#<n> ─▶ fsync ─▶ rename
//!                                                  └▶ S3: its upload id is written down here ─▶ parts ─▶ complete
//!   get ─▶ hashed on its way; the last piece is withheld where the digest is another
//! ```
//! Memory is bounded by a few parts, whatever the size. A key is there with all of its bytes or not at all; what a crash left half sent is
//! removed when the place is next opened.

mod directory;
mod place;
mod reading;
mod s3;
mod uploads;
mod writing;

pub use directory::open_directory;
pub use place::PlacedBlobs;
pub use s3::{S3Bucket, S3Credentials, open_s3, s3_client};

use std::path::PathBuf;

/// Why a place for blobs could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A directory of this host failed.
    #[error("open the directory {path}, where blobs are kept")]
    Directory {
        /// Which.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// The settings of the bucket do not work together.
    #[error("open the bucket {bucket}, where blobs are kept")]
    Bucket {
        /// Which.
        bucket: String,
        /// What went wrong.
        #[source]
        source: object_store::Error,
    },
}
