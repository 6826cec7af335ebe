//! Why an image could not be pulled.

use std::io;

use belljar_types::escape_untrusted;

/// A pull that did not work.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The registry could not be reached, or broke off.
    #[error("cannot get {what} from registry {host}")]
    Transport {
        /// What was asked for.
        what: String,
        /// Whom.
        host: String,
        /// What went wrong.
        #[source]
        source: Box<ureq::Error>,
    },
    /// The registry has no such thing, or does not say.
    #[error("registry {host} has no {what}")]
    NotFound {
        /// What was asked for.
        what: String,
        /// Whom.
        host: String,
    },
    /// The registry wants somebody else.
    #[error("registry {host} refuses to give {what}; check the credentials")]
    Denied {
        /// What was asked for.
        what: String,
        /// Whom.
        host: String,
    },
    /// The registry failed.
    #[error("registry {host} answered {status} when asked for {what}")]
    Status {
        /// What was asked for.
        what: String,
        /// Whom.
        host: String,
        /// Its answer.
        status: u16,
    },
    /// The registry wants a proof that is not understood.
    #[error("registry {host} asks to be authenticated to in an unknown way: \"{}\"", escape_untrusted(challenge.as_bytes()))]
    Challenge {
        /// Whom.
        host: String,
        /// What it wrote.
        challenge: String,
    },
    /// The registry's token server gave no token.
    #[error("the token server of registry {host} gave no usable token")]
    Token {
        /// Whom.
        host: String,
    },
    /// The registry sends elsewhere too often or in the clear.
    #[error("registry {host} redirects {what} {why}")]
    Redirect {
        /// What was asked for.
        what: String,
        /// Whom.
        host: String,
        /// What is wrong about it.
        why: &'static str,
    },
    /// What came is not what was asked for.
    #[error("registry {host} gave something else for {what}: expected {expected}, got {found}")]
    Content {
        /// What was asked for.
        what: String,
        /// Whom.
        host: String,
        /// Digest or size.
        expected: String,
        /// Digest or size.
        found: String,
    },
    /// What came could not be kept.
    #[error("cannot keep {what} while it is pulled")]
    Spool {
        /// What.
        what: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}
