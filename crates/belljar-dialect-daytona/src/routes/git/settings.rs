//! Where a repository's work comes from and goes to, and how git is set up in the sandbox.

use axum::Json;
use axum::http::StatusCode;
use belljar_http::{JsonBody, QueryOf};
use serde_json::json;

use super::{Answer, Inside, Repository, plain};
use crate::dto::{GitSetting, GitUser, InRepository, NewRemote, SettingQuery};
use crate::errors::ApiError;

/// `GET /git/remotes`.
pub(in crate::routes) async fn remotes(inside: Inside, QueryOf(asked): QueryOf<InRepository>) -> Answer<Json<serde_json::Value>> {
    let listed = Repository::at(&inside, &asked.path).run(&["config", "--null", "--get-regexp", r"^remote\..*\.url$"]).await?;
    Ok(Json(json!({ "remotes": super::parsing::remotes(&listed.said.only(belljar_types::StreamKind::Stdout)) })))
}

/// `POST /git/remotes`.
pub(in crate::routes) async fn add_remote(inside: Inside, JsonBody(asked): JsonBody<NewRemote>) -> Answer<StatusCode> {
    let repository = Repository::at(&inside, &asked.path);
    let (name, url) = (plain("name", &asked.name)?, plain("url", &asked.url)?);
    let added = repository.git(&["remote", "add", "--", name, url]).await;
    match added {
        Err(error) if error.status() == StatusCode::CONFLICT && asked.overwrite == Some(true) => {
            repository.git(&["remote", "set-url", "--", name, url]).await?;
        }
        added => drop(added?),
    }
    if asked.fetch == Some(true) {
        repository.git(&["fetch", "--quiet", "--", name]).await?;
    }
    Ok(StatusCode::CREATED)
}

/// Whose settings they are: the user's, unless a repository is named.
fn place<'a>(inside: &'a Inside, scope: Option<&str>, path: Option<&'a str>) -> Answer<(Repository<'a>, &'static str)> {
    match (scope.unwrap_or("global"), path.filter(|path| !path.is_empty())) {
        ("local", Some(path)) => Ok((Repository::at(inside, path), "--local")),
        ("local", None) => Err(ApiError::bad_request("path is required for local settings")),
        ("global", _) => Ok((Repository::nowhere(inside), "--global")),
        (other, _) => {
            let other = belljar_types::escape_untrusted(other.as_bytes());
            Err(ApiError::bad_request(format!("scope: expected global or local, got {other}")))
        }
    }
}

/// `GET /git/config`.
pub(in crate::routes) async fn setting(inside: Inside, QueryOf(asked): QueryOf<SettingQuery>) -> Answer<Json<serde_json::Value>> {
    let (repository, scope) = place(&inside, asked.scope.as_deref(), asked.path.as_deref())?;
    let ran = repository.run(&["config", scope, "--null", "--get", plain("key", &asked.key)?]).await?;
    let value = ran.said.only(belljar_types::StreamKind::Stdout);
    Ok(Json(json!({ "value": (ran.code() == 0).then(|| value.trim_end_matches('\0')) })))
}

/// `POST /git/config`.
pub(in crate::routes) async fn set(inside: Inside, JsonBody(asked): JsonBody<GitSetting>) -> Answer<StatusCode> {
    let (repository, scope) = place(&inside, asked.scope.as_deref(), asked.path.as_deref())?;
    repository.git(&["config", scope, "--replace-all", plain("key", &asked.key)?, plain("value", &asked.value)?]).await?;
    Ok(StatusCode::OK)
}

/// `POST /git/config/user`.
pub(in crate::routes) async fn set_user(inside: Inside, JsonBody(asked): JsonBody<GitUser>) -> Answer<StatusCode> {
    let (repository, scope) = place(&inside, asked.scope.as_deref(), asked.path.as_deref())?;
    for (key, value) in [("user.name", &asked.name), ("user.email", &asked.email)] {
        repository.git(&["config", scope, "--replace-all", key, plain(key, value)?]).await?;
    }
    Ok(StatusCode::OK)
}
