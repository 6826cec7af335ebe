//! What E2B has and this host does not do yet: said so. Nothing pretends to have worked.

use crate::errors::ApiError;

pub(super) async fn dockerfile() -> ApiError {
    ApiError::unsupported(
        "building a template by pushing an image (the first version of E2B's builds; newer SDKs and CLIs send steps, which is supported)",
    )
}
