//! Between Daytona's words and Belljar's, without I/O.

mod exit;
mod file;
mod list;
mod marks;
mod network;
mod path;
mod request;
mod sandbox;
mod volume;

pub(crate) use exit::exit_code;
pub(crate) use file::file_info;
pub(crate) use list::{listed_states, read_labels, read_list_query};
pub(crate) use marks::{Marks, check_labels, labels, name_filter, name_of, named};
pub(crate) use network::outgoing;
pub(crate) use path::{guest_path, shown_path};
pub(crate) use request::{create_request, idle_timeout, minutes, on_timeout};
pub(crate) use sandbox::{DAEMON_VERSION, Links, sandbox_dto, state_of, user_of};
pub(crate) use volume::{mount_dto, mount_request, volume_dto};
