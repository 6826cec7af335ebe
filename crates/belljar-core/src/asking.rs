//! Which request is being answered: a name that travels with the work, so that what is written down can be found beside the access log.
//! No verb has to carry it along.

use tracing::Instrument;

use crate::CoreError;

tokio::task_local! {
    static REQUEST: String;
}

/// Does some work in the name of a request.
pub async fn in_the_name_of<T>(request: &str, work: impl Future<Output = T>) -> T {
    REQUEST.scope(request.to_owned(), work).await
}

/// Does some work as a task of its own, in the name of the same request: whoever asked may go away, and what was begun is still done to its end.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, CoreError>> + Send + 'static,
) -> Result<T, CoreError> {
    let task = match request() {
        Some(request) => tokio::spawn(REQUEST.scope(request, work).in_current_span()),
        None => tokio::spawn(work.in_current_span()),
    };
    task.await.unwrap_or(Err(CoreError::Stopping))
}

/// The request that is being answered, if one is.
pub(crate) fn request() -> Option<String> {
    REQUEST.try_with(Clone::clone).ok()
}
