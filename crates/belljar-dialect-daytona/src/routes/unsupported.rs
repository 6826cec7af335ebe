//! What Daytona has and this host does not do: said so, by name. Nothing pretends to have worked.

use axum::extract::Request;

use crate::errors::ApiError;

/// Where each is found, and what it is called. The first that fits counts.
const CONTROL: [(&str, &str); 17] = [
    ("archive", "archiving a sandbox (a stopped one is on disk alone already)"),
    ("backup", "backing a sandbox up"),
    ("recover", "recovering a sandbox"),
    ("resize", "changing the resources of a sandbox that is there"),
    ("ttl", "ending a sandbox whatever its state (TTL)"),
    ("ssh-access", "access by SSH"),
    ("secrets", "mounting secrets (use a policy of the native API)"),
    ("telemetry", "telemetry of sandboxes (the native API has usage and metrics)"),
    ("signed-preview-url", "taking a signed link back before it expires"),
    ("build-logs", "making a sandbox from an image or a Dockerfile"),
    ("build-logs-url", "making a sandbox from an image or a Dockerfile"),
    ("forks", "the family of a sandbox (the native API has it)"),
    ("parent", "the family of a sandbox (the native API has it)"),
    ("ancestors", "the family of a sandbox (the native API has it)"),
    ("snapshots", "making a snapshot from an image (make a template: `belljar template build`)"),
    ("object-storage", "object storage for the contexts of images"),
    ("warm-pools", "warm pools"),
];

const TOOLBOX: [(&str, &str); 6] = [
    ("computeruse", "computer use (a desktop in the sandbox)"),
    ("lsp", "language servers (LSP)"),
    ("entrypoint", "the session of the image's entrypoint"),
    ("env", "changing the environment of a sandbox that runs"),
    ("init", "the daemon's own initialisation"),
    ("git", "this call on repositories"),
];

pub(super) async fn control(request: Request) -> ApiError {
    answer(&request, &CONTROL)
}

pub(super) async fn toolbox(request: Request) -> ApiError {
    answer(&request, &TOOLBOX)
}

fn answer(request: &Request, known: &[(&str, &str)]) -> ApiError {
    let path = request.uri().path();
    let is_part = |(part, _): &&(&str, &str)| path.split('/').any(|one| one == *part);
    match known.iter().find(is_part) {
        Some((_, what)) => ApiError::unsupported(what),
        None => {
            let words = format!("Cannot {} {path}", request.method());
            ApiError::not_found(belljar_types::escape_untrusted(words.as_bytes()))
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn what_is_not_done_is_named_and_what_is_not_known_is_not_there() {
        let status = |path: &str| answer(&Request::builder().uri(path).body(Body::empty()).unwrap(), &CONTROL).status().as_u16();
        assert_eq!((status("/sandbox/x/archive"), status("/object-storage/push-access"), status("/nothing")), (501, 501, 404));
    }
}
