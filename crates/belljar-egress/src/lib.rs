//! The way out of sandboxes. It is in the gateway, at the host's end of every cable; nothing is ever forwarded from a sandbox.
//!
//! ```text
//!   sandbox ── question for a name ──▶ names ─▶ an address out of 198.18.0.0/15 that stands for it here; no question leaves the host
//!           ── connection to anybody ─▶ door ─▶ who asks? what for? ─ decide ─▶ dial ─▶ resolve, check the address, connect ─▶ relay
//!                                        ├ transparent: the firewall sends every connection here, with its destination
//!                                        └ explicit:    CONNECT and SOCKS5 at port 3128 of the gateway's address
//! ```
//! Whoever is not attached gets nothing. If this process ends, connections end with it and the firewall has nobody to send new ones to.

mod authority;
mod book;
mod counts;
mod dial;
mod dns;
mod door;
mod egress;
mod entrance;
mod error;
mod hello;
mod http;
mod inspect;
mod pace;
mod prefixed;
mod relay;
mod secrets;
mod session;
mod uplink;
mod vault;
mod way;

pub use belljar_ports::{EgressEvent as Event, EgressEventKind as EventKind};
pub use dns::Resolver;
pub use egress::{Egress, EgressConfig, Lodge, Lodging};
pub use error::EgressError;
pub use secrets::SecretKeeper;
pub use session::Session;
pub use vault::Vault;
