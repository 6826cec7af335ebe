//! What came out of a sandbox, made fit to be read by a person, a program or a model.
//!
//! ```text
//!   bytes ─► mask ─► UTF-8 ─► escapes: kept, shown or stripped ─► mask again ─► head and tail ─► Cleaned, with its Provenance
//! ```
//!
//! Masking comes twice: before, because what is shown as it came must not carry a secret; and after, because a secret that a terminal escape
//! cuts in two is whole again once the escape is gone. Everything works piece by piece, in constant memory, and comes to the same whatever the
//! pieces are. Pure: no I/O.

mod bounded;
mod cleaner;
mod escapes;
mod mask;
mod provenance;
mod text;

pub use cleaner::{Cleaned, Cleaner, Hygiene};
pub use escapes::Escapes;
pub use mask::Mask;
pub use provenance::{Provenance, TRUST};
