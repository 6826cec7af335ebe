//! HTTP/1.1 as it has to be read at a boundary: every request of a connection is parsed strictly, judged, and written anew. What is ambiguous is
//! refused, because two readers could take it for two different requests.

mod body;
mod head;
mod serve;

pub(crate) use body::Reader;
pub(crate) use head::Head;
pub(crate) use serve::{Upstream, refusal, serve};
