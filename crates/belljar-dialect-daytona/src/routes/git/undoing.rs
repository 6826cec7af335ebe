//! Beginning a repository, and going back in one.

use axum::http::StatusCode;
use belljar_http::JsonBody;

use super::{Answer, Inside, Repository, plain};
use crate::dto::{NewRepository, Reset, Restore};
use crate::errors::ApiError;

/// `POST /git/init`.
pub(in crate::routes) async fn init(inside: Inside, JsonBody(asked): JsonBody<NewRepository>) -> Answer<StatusCode> {
    let path = String::from_utf8_lossy(inside.path(&asked.path)?.as_bytes()).into_owned();
    let mut arguments = vec!["init", "--quiet"];
    if asked.bare == Some(true) {
        arguments.push("--bare");
    }
    let branch = asked.initial_branch.as_deref().filter(|branch| !branch.is_empty());
    let branch = branch.map(|branch| Ok::<_, ApiError>(format!("--initial-branch={}", plain("initial_branch", branch)?))).transpose()?;
    arguments.extend(branch.as_deref());
    arguments.extend(["--", plain("path", &path)?]);
    Repository::nowhere(&inside).git(&arguments).await?;
    Ok(StatusCode::CREATED)
}

/// `POST /git/reset`: all of it to a commit, or some files out of what is to be committed.
pub(in crate::routes) async fn reset(inside: Inside, JsonBody(asked): JsonBody<Reset>) -> Answer<StatusCode> {
    let target = asked.target.as_deref().filter(|target| !target.is_empty());
    let target = target.map(|target| plain("target", target)).transpose()?.unwrap_or("HEAD");
    let files = asked.files.unwrap_or_default();
    let mode = match asked.mode.as_deref().filter(|mode| !mode.is_empty()) {
        None => None,
        Some(mode @ ("soft" | "mixed" | "hard" | "merge" | "keep")) if files.is_empty() => Some(format!("--{mode}")),
        Some(_) => return Err(ApiError::bad_request("mode: expected soft, mixed, hard, merge or keep, and no files")),
    };
    let mut arguments = vec!["reset", "--quiet"];
    arguments.extend(mode.as_deref());
    arguments.extend([target, "--"]);
    arguments.extend(files.iter().map(String::as_str));
    Repository::at(&inside, &asked.path).git(&arguments).await?;
    Ok(StatusCode::OK)
}

/// `POST /git/restore`.
pub(in crate::routes) async fn restore(inside: Inside, JsonBody(asked): JsonBody<Restore>) -> Answer<StatusCode> {
    let source = asked.source.as_deref().filter(|source| !source.is_empty());
    let source = source.map(|source| Ok::<_, ApiError>(format!("--source={}", plain("source", source)?))).transpose()?;
    let mut arguments = vec!["restore", "--quiet"];
    if asked.staged == Some(true) {
        arguments.push("--staged");
    }
    // Without a word about either it is the files themselves.
    if asked.worktree.unwrap_or(asked.staged != Some(true)) {
        arguments.push("--worktree");
    }
    arguments.extend(source.as_deref());
    arguments.push("--");
    arguments.extend(asked.files.iter().map(String::as_str));
    Repository::at(&inside, &asked.path).git(&arguments).await?;
    Ok(StatusCode::OK)
}
