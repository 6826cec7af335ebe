//! Names: answering the questions of sandboxes, and asking the node's own name servers, which only a connection that is allowed does.

mod message;
mod resolver;
mod server;

pub use resolver::Resolver;
pub(crate) use server::{serve_tcp, serve_udp};
