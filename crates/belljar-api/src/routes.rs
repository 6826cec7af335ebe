//! What is answered where. Each route carries its own description, of which the OpenAPI document is made.

mod artifacts;
mod audit;
mod carrying;
mod code;
mod exec;
mod file_tree;
mod files;
mod keep;
mod metering;
pub(crate) mod ports;
mod processes;
mod projects;
mod recordings;
mod sandboxes;
mod server;
mod snapshots;
mod stdio;
mod templates;
mod uploads;
mod volume_files;
mod volumes;
mod webhooks;
mod websocket;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::any;
use belljar_http::Gate;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::openapi::Document;
use crate::state::ApiState;

/// All routes of `/v1`, and those for operators. Put [`belljar_http::Front`] around it.
pub fn router(state: ApiState) -> Router {
    server::count_sandboxes(&state);
    let (keyed, _) = keyed().split_for_parts();
    let (open, _) = open().split_for_parts();
    let gate = from_fn_with_state(Arc::clone(&state.gate), Gate::check);
    let below = ["", "/", "/{*path}"].map(|path| format!("/v1/sandboxes/{{id}}/ports/{{port}}/proxy{path}"));
    let keyed = below.iter().fold(keyed, |router, path| router.route(path, any(ports::proxy)));
    keyed.route_layer(gate).merge(open).with_state(state)
}

/// The routes with the document that describes them.
pub(crate) fn documented() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(Document::openapi()).merge(open()).merge(keyed())
}

/// What anyone may ask.
fn open() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(server::health))
        .routes(routes!(server::ready))
        .routes(routes!(server::metrics))
        .routes(routes!(server::document))
}

/// What needs a key.
fn keyed() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(sandboxes::create, sandboxes::list))
        .routes(routes!(sandboxes::get, sandboxes::update, sandboxes::kill))
        .routes(routes!(sandboxes::lease))
        .routes(routes!(sandboxes::pause))
        .routes(routes!(sandboxes::resume))
        .routes(routes!(snapshots::take))
        .routes(routes!(snapshots::list))
        .routes(routes!(snapshots::get, snapshots::remove))
        .routes(routes!(snapshots::fork_sandbox))
        .routes(routes!(snapshots::fork_snapshot))
        .routes(routes!(snapshots::rollback))
        .routes(routes!(snapshots::tree))
        .routes(routes!(carrying::export))
        .routes(routes!(carrying::import))
        .routes(routes!(carrying::push))
        .routes(routes!(carrying::pull))
        .routes(routes!(artifacts::keep))
        .routes(routes!(artifacts::list))
        .routes(routes!(artifacts::get, artifacts::remove))
        .routes(routes!(artifacts::content))
        .routes(routes!(sandboxes::usage))
        .routes(routes!(sandboxes::metrics))
        .routes(routes!(exec::exec))
        .routes(routes!(code::run))
        .routes(routes!(code::create, code::list))
        .routes(routes!(code::remove))
        .routes(routes!(code::restart))
        .routes(routes!(code::interrupt))
        .routes(routes!(processes::start, processes::list))
        .routes(routes!(processes::get))
        .routes(routes!(processes::output))
        .routes(routes!(processes::wait))
        .routes(routes!(processes::signal))
        .routes(routes!(processes::resize))
        .routes(routes!(stdio::write, stdio::close))
        .routes(routes!(websocket::attach))
        .routes(routes!(websocket::start))
        .routes(routes!(files::read, files::head, files::write, files::remove, file_tree::change))
        .routes(routes!(file_tree::stat))
        .routes(routes!(file_tree::list))
        .routes(routes!(file_tree::make_directory))
        .routes(routes!(file_tree::rename))
        .routes(routes!(file_tree::watch))
        .routes(routes!(file_tree::search, file_tree::search_body))
        .routes(routes!(file_tree::attribute, file_tree::set_attribute, file_tree::remove_attribute))
        .routes(routes!(ports::list))
        .routes(routes!(ports::token))
        .routes(routes!(volumes::create, volumes::list))
        .routes(routes!(volumes::get, volumes::remove))
        .routes(routes!(volumes::copy))
        .routes(routes!(volume_files::read, volume_files::write, volume_files::remove, volume_files::change))
        .routes(routes!(volume_files::stat))
        .routes(routes!(volume_files::list))
        .routes(routes!(volume_files::make_directory))
        .routes(routes!(volume_files::rename))
        .routes(routes!(templates::list))
        .routes(routes!(templates::get, templates::make, templates::remove))
        .routes(routes!(uploads::upload))
        .routes(routes!(templates::gc))
        .routes(routes!(projects::list, projects::add))
        .routes(routes!(projects::get, projects::update, projects::remove))
        .routes(routes!(projects::keys, projects::add_key))
        .routes(routes!(projects::remove_key))
        .routes(routes!(metering::usage))
        .routes(routes!(metering::list, metering::set, metering::remove))
        .routes(routes!(webhooks::list, webhooks::add))
        .routes(routes!(webhooks::remove))
        .routes(routes!(recordings::list))
        .routes(routes!(recordings::fetch))
        .routes(routes!(audit::read))
        .routes(routes!(audit::verify))
        .routes(routes!(audit::export))
        .routes(routes!(server::whoami))
        .routes(routes!(server::server))
}
