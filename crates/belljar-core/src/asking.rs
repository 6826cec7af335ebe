//! Which request is being answered: a name that travels with the work, so that what is written down can be found beside the access log.
//! No verb has to carry it along.

tokio::task_local! {
    static REQUEST: String;
}

/// Does some work in the name of a request.
pub async fn in_the_name_of<T>(request: &str, work: impl Future<Output = T>) -> T {
    REQUEST.scope(request.to_owned(), work).await
}

/// The request that is being answered, if one is.
pub(crate) fn request() -> Option<String> {
    REQUEST.try_with(Clone::clone).ok()
}
