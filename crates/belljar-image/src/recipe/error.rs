//! Why a recipe could not be built, with what to do about it.

use std::io;
use std::path::PathBuf;

/// A recipe that did not become a template.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// The recipe's file could not be read.
    #[error("cannot read recipe {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The recipe is not written as it should be.
    #[error("recipe {} is not understood", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        #[source]
        source: toml::de::Error,
    },
    /// A value in the recipe is not allowed.
    #[error("recipe {}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Which field and why.
        #[source]
        source: belljar_types::Invalid,
    },
    /// The builder is not installed.
    #[error("cannot run mmdebstrap; install it with: apt-get install mmdebstrap")]
    Builder(#[source] io::Error),
    /// There is no place to build in.
    #[error("cannot make a directory to build in; check TMPDIR, or /var/tmp when it is not set")]
    Workshop(#[source] io::Error),
    /// Apt does not know the suite.
    #[error("this machine's apt has no source for Debian {suite}; add one under /etc/apt, or write `sources` into the recipe")]
    NoSources {
        /// Which.
        suite: String,
    },
    /// Apt's configuration could not be read.
    #[error("cannot read apt's sources under /etc/apt")]
    Sources(#[source] io::Error),
    /// A certificate could not be read.
    #[error("cannot read certificates from {}", path.display())]
    Certificates {
        /// The file or directory.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The builder failed.
    #[error("mmdebstrap failed while {step}: {}", belljar_types::escape_untrusted(last_words.as_bytes()))]
    Build {
        /// What it was doing.
        step: String,
        /// The end of what it wrote.
        last_words: String,
    },
    /// A file that the recipe lists could not be put into the tree.
    #[error("cannot write {path} into the template")]
    Plant {
        /// Which.
        path: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}
