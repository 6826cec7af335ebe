//! Extended attributes for a sandbox whose kernel has none of its own. It is asked all the same, and first: whether the file is there, and whether this
//! user may, only it can say. The host steps in where the one thing that is missing is a place to keep them.

use std::io;
use std::sync::Arc;

use belljar_guest_protocol::Verb;
use belljar_ports::{Guest, GuestError};
use belljar_types::{FileInfo, GuestPath, UserName, escape_untrusted};

/// Linux: the filesystem has none.
const NOT_SUPPORTED: i32 = 95;

/// Where the host keeps what the sandbox's kernel cannot.
pub trait OutsideAttributes: Send + Sync + 'static {
    /// Whether it keeps attributes of this name.
    fn keeps(&self, attribute: &str) -> bool;
    /// Whether the file at an absolute path of the sandbox has any.
    fn any(&self, path: &GuestPath) -> io::Result<bool>;
    /// The attribute of the file at an absolute path of the sandbox.
    fn get(&self, path: &GuestPath, attribute: &str) -> io::Result<Option<Vec<u8>>>;
    /// Sets or removes it.
    fn set(&self, path: &GuestPath, attribute: &str, value: Option<&[u8]>) -> io::Result<()>;
}

/// Whether the sandbox's kernel let this user, and then knew of no attributes.
pub(crate) fn is_unsupported(refused: &GuestError) -> bool {
    matches!(refused, GuestError::Refused { errno: NOT_SUPPORTED, .. })
}

/// Whether a file that was just written has attributes, inside or outside. What the agent said stands where the host does not find the file: it is in the
/// sandbox's memory then.
pub(crate) async fn any(attributes: &Arc<dyn OutsideAttributes>, written: &FileInfo) -> Option<bool> {
    if written.attributes == Some(true) {
        return Some(true);
    }
    let (attributes, path) = (Arc::clone(attributes), written.path.clone());
    match tokio::task::spawn_blocking(move || attributes.any(&path)).await {
        Ok(Ok(any)) => Some(any),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => written.attributes,
        _ => None,
    }
}

/// One attribute of one file.
pub(crate) struct Place {
    attributes: Arc<dyn OutsideAttributes>,
    path: GuestPath,
    name: String,
    refused: GuestError,
}

/// Where the host keeps this one; or what the sandbox said, if nowhere.
pub(crate) async fn place(
    agent: &impl Guest,
    attributes: Option<&Arc<dyn OutsideAttributes>>,
    path: &GuestPath,
    name: &str,
    user: Option<&UserName>,
    refused: GuestError,
) -> Result<Place, GuestError> {
    let Some(attributes) = attributes.filter(|attributes| attributes.keeps(name)) else { return Err(refused) };
    // Only the sandbox knows where a user's home is.
    let path = if path.is_absolute() { path.clone() } else { agent.stat(path, user).await?.path };
    Ok(Place { attributes: Arc::clone(attributes), path, name: name.to_owned(), refused })
}

impl Place {
    pub(crate) async fn get(self) -> Result<Option<Vec<u8>>, GuestError> {
        self.visit(Verb::GetXattr, |place| place.attributes.get(&place.path, &place.name)).await
    }

    pub(crate) async fn set(self, value: Option<&[u8]>) -> Result<(), GuestError> {
        let value = value.map(<[u8]>::to_vec);
        self.visit(Verb::SetXattr, move |place| place.attributes.set(&place.path, &place.name, value.as_deref())).await
    }

    async fn visit<T: Send + 'static>(
        self,
        verb: Verb,
        visit: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> Result<T, GuestError> {
        let lost = |source| GuestError::Lost { operation: verb.words(), source };
        let visited = tokio::task::spawn_blocking(move || (visit(&self), self)).await;
        let (done, place) = visited.map_err(|_| lost(io::ErrorKind::Interrupted.into()))?;
        done.map_err(|error| match error.raw_os_error() {
            // It is no file of the sandbox's disk: what its kernel said stands.
            _ if error.kind() == io::ErrorKind::NotFound => place.refused,
            None => lost(error),
            Some(errno) => GuestError::Refused {
                operation: verb.words(),
                errno,
                message: format!("{}: {error}", escape_untrusted(place.path.as_bytes())),
            },
        })
    }
}
