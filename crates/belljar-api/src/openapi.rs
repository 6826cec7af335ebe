//! The OpenAPI document. Its paths come from the routes themselves; here is what they have in common.

use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::errors::ProblemSchema;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Belljar",
        description = "Disposable computers for code that a model wrote.\n\nErrors are RFC 9457 problems with a stable `code`. Durations are seconds, sizes are bytes, times are RFC 3339. Requests refuse fields they do not know. What belongs to another project is not there: 404.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    servers((url = "/", description = "This server")),
    paths(crate::routes::ports::proxy),
    components(schemas(ProblemSchema)),
    modifiers(&Keys),
    security(("bearer" = []), ("key" = [])),
    tags(
        (name = "sandboxes", description = "Make, find, change and end sandboxes"),
        (name = "snapshots", description = "Keep the state of a sandbox, make others from it, and go back to it"),
        (name = "artifacts", description = "Keep files of sandboxes, and fetch them when those are gone"),
        (name = "processes", description = "Run commands, and read what they write as often as you like"),
        (name = "code", description = "Run code in contexts that remember what ran before"),
        (name = "files", description = "Read, write, watch and search files"),
        (name = "volumes", description = "Storage that outlives sandboxes, and its content without one"),
        (name = "ports", description = "Reach programs that listen in a sandbox"),
        (name = "templates", description = "What sandboxes are made from"),
        (name = "projects", description = "Who may, and how much (administrators)"),
        (name = "usage", description = "What was used, and how much may be"),
        (name = "webhooks", description = "Who is told what happens"),
        (name = "audit", description = "What happened, and whether the record of it is whole"),
        (name = "server", description = "The server itself")
    )
)]
pub(crate) struct Document;

struct Keys;

impl Modify for Keys {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("An API key: `bj_…`")).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        let header = ApiKeyValue::with_description("X-API-Key", "The same key in a header of its own");
        components.add_security_scheme("key", SecurityScheme::ApiKey(ApiKey::Header(header)));
    }
}

/// An operation has a name of its own; the route that takes every method has as many operations.
fn name_every_operation(document: &mut utoipa::openapi::OpenApi) {
    for item in document.paths.paths.values_mut() {
        let operations = [
            ("Get", &mut item.get),
            ("Head", &mut item.head),
            ("Post", &mut item.post),
            ("Put", &mut item.put),
            ("Patch", &mut item.patch),
            ("Delete", &mut item.delete),
            ("Options", &mut item.options),
        ];
        for (method, operation) in operations {
            if let Some(name) = operation.as_mut().and_then(|operation| operation.operation_id.as_mut()).filter(|name| *name == "reachPort")
            {
                name.push_str(method);
            }
        }
    }
}

/// The document as JSON, as it is checked in and served.
pub fn openapi() -> String {
    let (_, mut document) = crate::routes::documented().split_for_parts();
    name_every_operation(&mut document);
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}
