//! The native REST API, version 1, and its OpenAPI document, which is generated from the same routes.
//!
//! Files have the names that every front has: `routes` (what is answered where), `dto` (what travels), `translate` (between that and the core's
//! words), `errors` (problems), `stream` (answers that go on). Nothing here decides about sandboxes; that is the core's.

mod dto;
mod errors;
mod extract;
mod openapi;
mod routes;
mod state;
mod stream;
mod translate;

pub use openapi::openapi;
pub use routes::router;
pub use state::ApiState;
