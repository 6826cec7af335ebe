//! The toolbox's paths, for one sandbox: what Daytona has a daemon in the sandbox for, and the host does here through the agent.

use axum::extract::DefaultBodyLimit;
use axum::routing::{delete, get, post};
use axum::{Json, Router};

use super::{
    code_run, download, files, git, inside, interpreter, process, search, session_commands, session_logs, sessions, terminals, unsupported,
    upload,
};
use crate::state::DaytonaState;
use crate::translate::DAEMON_VERSION;

pub(super) fn router() -> Router<DaytonaState> {
    let rest = Router::new()
        .route("/version", get(|| async { Json(serde_json::json!({ "version": DAEMON_VERSION })) }))
        .route("/user-home-dir", get(inside::home))
        .route("/project-dir", get(inside::home))
        .route("/work-dir", get(inside::work))
        .route("/system/metrics", get(inside::metrics))
        .route("/port", get(inside::ports))
        .route("/port/{port}/in-use", get(inside::port_in_use));
    processes().merge(file_system()).merge(repositories()).merge(rest).fallback(unsupported::toolbox).layer(DefaultBodyLimit::disable())
}

fn processes() -> Router<DaytonaState> {
    Router::new()
        .route("/process/execute", post(process::execute))
        .route("/process/code-run", post(code_run::run))
        .route("/process/session", get(sessions::list).post(sessions::create))
        .route("/process/session/entrypoint", get(unsupported::toolbox))
        .route("/process/session/entrypoint/logs", get(unsupported::toolbox))
        .route("/process/session/{session}", get(sessions::show).delete(sessions::delete))
        .route("/process/session/{session}/exec", post(session_commands::execute))
        .route("/process/session/{session}/command/{command}", get(session_commands::show))
        .route("/process/session/{session}/command/{command}/input", post(session_commands::input))
        .route("/process/session/{session}/command/{command}/logs", get(session_logs::logs))
        .route("/process/pty", get(terminals::list).post(terminals::create))
        .route("/process/pty/create-connect", get(terminals::create_and_connect))
        .route("/process/pty/{terminal}", get(terminals::show).delete(terminals::delete))
        .route("/process/pty/{terminal}/connect", get(terminals::connect))
        .route("/process/pty/{terminal}/resize", post(terminals::resize))
        .route("/process/interpreter/context", get(interpreter::list).post(interpreter::create))
        .route("/process/interpreter/context/{id}", delete(interpreter::remove))
        .route("/process/interpreter/execute", get(interpreter::execute))
}

fn file_system() -> Router<DaytonaState> {
    Router::new()
        .route("/files", get(files::list).delete(files::delete))
        .route("/files/", get(files::list).delete(files::delete))
        .route("/files/info", get(files::info))
        .route("/files/folder", post(files::make_directory))
        .route("/files/move", post(files::rename))
        .route("/files/permissions", post(files::permissions))
        .route("/files/find", get(search::in_files))
        .route("/files/search", get(search::by_name))
        .route("/files/replace", post(search::replace))
        .route("/files/download", get(download::one))
        .route("/files/bulk-download", post(download::several))
        .route("/files/upload", post(upload::one))
        .route("/files/upload-v2", post(upload::one))
        .route("/files/bulk-upload", post(upload::several))
}

fn repositories() -> Router<DaytonaState> {
    Router::new()
        .route("/git/clone", post(git::clone))
        .route("/git/status", get(git::status))
        .route("/git/add", post(git::add))
        .route("/git/commit", post(git::commit))
        .route("/git/history", get(git::history))
        .route("/git/branches", get(git::branches).post(git::make_branch).delete(git::delete_branch))
        .route("/git/init", post(git::init))
        .route("/git/reset", post(git::reset))
        .route("/git/restore", post(git::restore))
        .route("/git/remotes", get(git::remotes).post(git::add_remote))
        .route("/git/config", get(git::setting).post(git::set))
        .route("/git/config/user", post(git::set_user))
        .route("/git/checkout", post(git::checkout))
        .route("/git/pull", post(git::pull))
        .route("/git/push", post(git::push))
}
