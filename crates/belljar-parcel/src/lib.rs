//! [`belljar_ports::Parcels`]: a snapshot of this host as one stream of bytes, and back.
//!
//! ```text
//!   "belljar snapshot\n" version                        what it is, before anything else is read
//!   part "manifest"      who, what, and which parts follow
//!   part "layer/<sha256>"…  each layer's tree, lowest first, the agent's last
//!   part "upper"         what was written over them
//!   part "memory/<name>"…   the memory image, if there is one
//!   part "end"
//!
//!   a part:  length name │ (length bytes)* 0 │ SHA-256 of name and bytes
//! ```
//! Lengths are 32 bits, the lowest byte first. Nothing is compressed: whoever carries it may. A flipped bit anywhere is found: in a name or a length
//! because another part was expected, in bytes by their digest, in a layer also by its name. Trees travel as tar streams and are unpacked by
//! the code that unpacks strangers' archives.

mod channel;
mod manifest;
mod packing;
mod parts;
mod unpacking;

pub use packing::HostParcels;
