//! The control plane's paths.

use axum::Router;
use axum::routing::{get, post, put};

use super::{links, lists, preview, sandboxes, settings, snapshots, unsupported, volumes};
use crate::state::DaytonaState;

pub(super) fn router() -> Router<DaytonaState> {
    let sandboxes = Router::new()
        .route("/sandbox", get(lists::page).post(sandboxes::create))
        .route("/sandbox/paginated", get(lists::numbered_page))
        .route("/sandbox/{sandbox}", get(sandboxes::show).delete(sandboxes::delete))
        .route("/sandbox/{sandbox}/start", post(sandboxes::start))
        .route("/sandbox/{sandbox}/stop", post(sandboxes::stop))
        .route("/sandbox/{sandbox}/pause", post(sandboxes::pause))
        .route("/sandbox/{sandbox}/fork", post(snapshots::fork))
        .route("/sandbox/{sandbox}/snapshot", post(snapshots::take))
        .route("/sandbox/{sandbox}/last-activity", post(sandboxes::touch))
        .route("/sandbox/{sandbox}/signing-key", get(links::show))
        .route("/sandbox/{sandbox}/signing-key/rotate", post(links::rotate))
        .route("/sandbox/{sandbox}/toolbox-proxy-url", get(sandboxes::toolbox_url));
    let settings = Router::new()
        .route("/sandbox/{sandbox}/labels", put(settings::labels))
        .route("/sandbox/{sandbox}/public/{public}", post(settings::public))
        .route("/sandbox/{sandbox}/autostop/{interval}", post(settings::auto_stop))
        .route("/sandbox/{sandbox}/autopause/{interval}", post(settings::auto_pause))
        .route("/sandbox/{sandbox}/autoarchive/{interval}", post(settings::auto_archive))
        .route("/sandbox/{sandbox}/autodelete/{interval}", post(settings::auto_delete))
        .route("/sandbox/{sandbox}/network-settings", post(settings::network));
    let ports = Router::new()
        .route("/sandbox/{sandbox}/ports/{port}/preview-url", get(preview::link))
        .route("/sandbox/{sandbox}/ports/{port}/signed-preview-url", get(preview::signed_link));
    let rest = Router::new()
        .route("/snapshots", get(snapshots::list).post(unsupported::control))
        .route("/snapshots/{id}", get(snapshots::show).delete(snapshots::remove))
        .route("/volumes", get(volumes::list).post(volumes::create))
        .route("/volumes/by-name/{id}", get(volumes::show))
        .route("/volumes/{id}", get(volumes::show).delete(volumes::remove));
    sandboxes.merge(settings).merge(ports).merge(rest).fallback(unsupported::control)
}
