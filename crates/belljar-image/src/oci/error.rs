//! Why an image was not taken. Nothing of it becomes a template; whole layers that were verified may stay in the store.

use std::io;
use std::path::PathBuf;

use belljar_types::escape_untrusted;

/// An image that was not taken.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    /// The image's file or directory could not be opened.
    #[error("cannot open image {}", path.display())]
    Open {
        /// Where.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A part of the image could not be read.
    #[error("cannot read \"{}\" of the image", escape_untrusted(part.as_bytes()))]
    Read {
        /// Which part.
        part: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A part of the image is not there.
    #[error("the image has no \"{}\"", escape_untrusted(part.as_bytes()))]
    Missing {
        /// Which part.
        part: String,
    },
    /// A document of the image is larger than any honest one.
    #[error("\"{}\" of the image is larger than {limit} bytes", escape_untrusted(part.as_bytes()))]
    TooLarge {
        /// Which part.
        part: String,
        /// The bound.
        limit: u64,
    },
    /// A document of the image is not what it should be.
    #[error("\"{}\" of the image is not understood", escape_untrusted(part.as_bytes()))]
    Parse {
        /// Which part.
        part: String,
        /// What the parser said.
        #[source]
        source: serde_json::Error,
    },
    /// Content that is not what its digest says.
    #[error("\"{}\" of the image was changed: expected {expected}, got {found}", escape_untrusted(part.as_bytes()))]
    Digest {
        /// Which part.
        part: String,
        /// What it should hash to.
        expected: String,
        /// What it hashes to.
        found: String,
    },
    /// Content that is shorter or longer than its descriptor says.
    #[error("\"{}\" of the image has {found} bytes, expected {expected}", escape_untrusted(part.as_bytes()))]
    Size {
        /// Which part.
        part: String,
        /// What it should be.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// A digest that is not `sha256:` and 64 digits.
    #[error("the image names content by \"{}\"; only sha256 digests are understood", escape_untrusted(.0.as_bytes()))]
    DigestForm(String),
    /// A layer of a kind that is not a tar.
    #[error("the image has a layer of type \"{}\", which is not a tar, tar+gzip or tar+zstd", escape_untrusted(.0.as_bytes()))]
    LayerType(String),
    /// Layers and their digests do not pair up.
    #[error("the image has {layers} layers but {diff_ids} layer digests in its configuration")]
    LayerCount {
        /// In the manifest.
        layers: usize,
        /// In the configuration.
        diff_ids: usize,
    },
    /// No image for this machine.
    #[error("the image is not made for {wanted}; it has {}", escape_untrusted(found.as_bytes()))]
    Platform {
        /// What this machine runs.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// Several images to choose from.
    #[error("there are several images: {}; choose one by its tag", escape_untrusted(found.as_bytes()))]
    Ambiguous {
        /// What there is.
        found: String,
    },
    /// Lists of lists of images.
    #[error("the image's index refers to further indexes more than {0} deep")]
    Nesting(usize),
}
