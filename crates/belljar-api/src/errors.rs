//! Problems of this API: how they are described in the document, and those that only its routes know.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use belljar_http::Problem;
use belljar_interpreter::ContextId;
use belljar_types::{ArtifactId, Invalid, KeyId, ProcessId, ProjectId, SandboxId, TemplateName, escape_untrusted};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

/// What went wrong (RFC 9457). Programs decide by `code`, which is stable; people read `detail`.
#[derive(ToSchema)]
#[schema(as = Problem)]
#[expect(dead_code, reason = "it describes the body for the document; belljar-http writes it")]
pub(crate) struct ProblemSchema {
    /// `urn:belljar:problem:` and the code.
    #[schema(rename = "type", example = "urn:belljar:problem:sandbox_not_found")]
    r#type: String,
    /// The code in words.
    #[schema(example = "sandbox not found")]
    title: String,
    /// The HTTP status.
    #[schema(example = 404)]
    status: u16,
    /// Stable.
    #[schema(example = "sandbox_not_found")]
    code: String,
    /// What happened and what to do.
    #[schema(example = "there is no sandbox sk3v9m2x8c7p4q6w5z2n")]
    detail: String,
    /// The field of the request that was wrong.
    field: Option<String>,
    /// Seconds after which to try again.
    retry_after: Option<u64>,
    /// Which request this was; the server's log has the same.
    request_id: Option<String>,
}

/// The problems that every route may answer.
pub(crate) struct Problems;

/// The problems of routes that need no key.
pub(crate) struct OpenProblems;

const EVERYWHERE: [(&str, &str); 7] = [
    ("400", "The request is wrong; `field` says where. Nothing was changed."),
    ("404", "There is no such thing in this project."),
    ("405", "The path does not take this method."),
    ("413", "The body is too large."),
    ("415", "The body has the wrong type."),
    ("500", "A fault of the server; its log has more under `request_id`."),
    ("503", "Busy or away for now; `Retry-After` says when to try again."),
];
const WITH_KEY: [(&str, &str); 6] = [
    ("401", "There is no key, or it is not valid here."),
    ("403", "The key lacks the scope that this needs."),
    ("409", "It cannot be done in the present state, or what is inside said no."),
    ("422", "This host's engines cannot do it."),
    ("429", "The project's quota, or the key's rate, is used up."),
    ("502", "The program inside does not listen, or does not speak HTTP."),
];

fn described(problems: &[(&str, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let content = || ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    problems
        .iter()
        .map(|(status, words)| {
            let response = ResponseBuilder::new().description(*words).content("application/problem+json", content()).build();
            ((*status).to_owned(), RefOr::T(response))
        })
        .collect()
}

impl IntoResponses for OpenProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&EVERYWHERE)
    }
}

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut all = described(&EVERYWHERE);
        all.extend(described(&WITH_KEY));
        all
    }
}

fn not_found(code: &'static str, what: &str, text: &str) -> Problem {
    let shown: String = text.chars().take(80).collect();
    Problem::new(StatusCode::NOT_FOUND, code, format!("there is no {what} {}", escape_untrusted(shown.as_bytes())))
}

/// What cannot be the id of anything names nothing.
macro_rules! parsed {
    ($name:ident, $id:ty, $code:literal, $what:literal) => {
        pub(crate) fn $name(text: &str) -> Result<$id, Problem> {
            text.parse().map_err(|_: Invalid| not_found($code, $what, text))
        }
    };
}
parsed!(sandbox_id, SandboxId, "sandbox_not_found", "sandbox");
parsed!(process_id, ProcessId, "process_not_found", "process");
parsed!(template_name, TemplateName, "template_not_found", "template");
parsed!(context_id, ContextId, "context_not_found", "context");
parsed!(project_id, ProjectId, "project_not_found", "project");
parsed!(artifact_id, ArtifactId, "artifact_not_found", "artifact");
parsed!(key_id, KeyId, "key_not_found", "key");

/// A port in a path.
pub(crate) fn port(text: &str) -> Result<u16, Problem> {
    text.parse().ok().filter(|port| *port != 0).ok_or_else(|| Invalid::new("port", "a number from 1 to 65535", text).into())
}

/// A process that the agent does not know.
pub(crate) fn no_process(id: &ProcessId) -> Problem {
    not_found("process_not_found", "process", id.as_str())
}
