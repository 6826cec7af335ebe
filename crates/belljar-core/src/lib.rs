//! What a sandbox service decides, knowing no engine and no vendor.
//!
//! So far: which isolation class a sandbox gets ([`choose_class`]) and what a host is told about itself ([`DoctorReport`]).

mod doctor;
mod placement;

pub use doctor::DoctorReport;
pub use placement::{ClassChoice, NoClass, SharedKernel, choose_class};
