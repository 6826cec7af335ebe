//! Between E2B's words and Belljar's, without I/O.

pub(crate) mod build;
mod entry;
mod exit;
mod http;
mod list;
mod marks;
mod network;
mod output;
mod path;
mod request;
mod sandbox;
mod snapshot;
mod volume;

pub(crate) use entry::{entry, event_kind};
pub(crate) use exit::end_event;
pub(crate) use http::{Encoding, Wanted, content_type, disposition, encoding, wanted};
pub(crate) use list::ListPlan;
pub(crate) use marks::Marks;
pub(crate) use network::outgoing;
pub(crate) use output::output_lines;
pub(crate) use path::{guest_path, sort_depth_first};
pub(crate) use request::{create_request, template_name};
pub(crate) use sandbox::{ENVD_VERSION, cpu_count, detail, sandbox_dto};
pub(crate) use snapshot::{snapshot_cursor, snapshot_dto, snapshot_token};
pub(crate) use volume::{entry_stat, mount_dto, mount_request, volume_dto};
