//! Repositories, by the sandbox's own `git`: arguments are lists, never a shell's text, and what looks like an option where a name is meant is refused.
//!
//! Who is let in at a remote is told to git through its environment, for one command: it is in no argument that other programs could see, in no file, and
//! in no configuration that stays.

mod parsing;
mod settings;
mod undoing;

use std::collections::BTreeMap;

use axum::Json;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_http::{JsonBody, QueryOf};
use belljar_types::{ProcessSpec, StreamKind};

pub(super) use settings::{add_remote, remotes, set, set_user, setting};
pub(super) use undoing::{init, reset, restore};

use super::inside::Inside;
use super::run::{Ran, deadline, finish, says_no_directory};
use super::sandboxes::Answer;
use crate::dto::{Branch, Checkout, Clone, Commit, Credentials, GitFiles, InRepository, Status, Transfer};
use crate::errors::{ApiError, is_no_such_file, of_guest};

/// Seconds that a transfer may take.
const LONGEST: u64 = 30 * 60;
/// Fields and records of what git lists: neither is ever in a name or a message.
const HISTORY: &str = "--format=%H%x1f%an%x1f%ae%x1f%aI%x1f%B%x1e";

/// A repository of the sandbox.
struct Repository<'a> {
    inside: &'a Inside,
    path: Option<&'a str>,
    env: BTreeMap<String, String>,
}

impl<'a> Repository<'a> {
    fn at(inside: &'a Inside, path: &'a str) -> Self {
        Self { inside, path: Some(path), env: BTreeMap::new() }
    }

    /// Git without a repository.
    fn nowhere(inside: &'a Inside) -> Self {
        Self { inside, path: None, env: BTreeMap::new() }
    }

    fn known_as(mut self, credentials: &Credentials, trusting: bool) -> Self {
        self.env.extend(let_in(credentials, trusting));
        self
    }

    /// Runs git and gives back what it wrote.
    async fn git(&self, arguments: &[&str]) -> Answer<String> {
        let ran = self.run(arguments).await?;
        if ran.code() == 0 { Ok(ran.said.only(StreamKind::Stdout)) } else { Err(parsing::refusal(&ran.said.only(StreamKind::Stderr))) }
    }

    async fn run(&self, arguments: &[&str]) -> Answer<Ran> {
        let inside = self.inside;
        let mut env = self.env.clone();
        // Nobody is there to be asked, and what is said is read by programs.
        env.extend([("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C.UTF-8")].map(|(name, value)| (name.to_owned(), value.to_owned())));
        let cwd = self.path.map(|path| inside.path(path)).transpose()?;
        let argv = ["git", "-c", "core.quotePath=false", "-c", "color.ui=never"].iter().chain(arguments);
        let spec = ProcessSpec { cwd, deadline: deadline(Some(LONGEST)), ..inside.process(argv, env) };
        super::process::check(&spec)?;
        let (info, output) = match inside.session.start_attached(&spec).await {
            Ok(started) => started,
            Err(error) if says_no_directory(&error) => {
                return Err(ApiError::not_found("repository does not exist").with_code("GIT_REPO_NOT_FOUND"));
            }
            Err(error) if is_no_such_file(&error) => {
                let template = inside.session.sandbox().template.to_string();
                return Err(ApiError::unsupported(&format!("git, which is not installed in the template {template},")));
            }
            Err(error) => return Err(of_guest(&inside.session, error).await),
        };
        match finish(&inside.session, &info, output, None).await {
            Ok(ran) => ran.in_time(),
            Err(error) => Err(error.told(inside).await),
        }
    }
}

/// Settings for one command, as git reads them from its environment.
fn let_in(credentials: &Credentials, trusting: bool) -> BTreeMap<String, String> {
    let mut settings = Vec::new();
    if let (Some(name), Some(word)) = (&credentials.username, &credentials.password) {
        settings.push(("http.extraHeader", format!("Authorization: Basic {}", STANDARD.encode(format!("{name}:{word}")))));
    }
    if trusting {
        settings.push(("http.sslVerify", "false".to_owned()));
    }
    let mut env = BTreeMap::from([("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())]);
    for (number, (key, value)) in settings.into_iter().enumerate() {
        env.insert(format!("GIT_CONFIG_KEY_{number}"), key.to_owned());
        env.insert(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    env
}

/// A name that git would not take for an option.
fn plain<'a>(field: &str, name: &'a str) -> Answer<&'a str> {
    if name.is_empty() || name.starts_with('-') || name.contains('\0') {
        return Err(belljar_types::Invalid::new(field, "a name that does not begin with a dash", name).into());
    }
    Ok(name)
}

/// `POST /git/clone`.
pub(super) async fn clone(inside: Inside, JsonBody(asked): JsonBody<Clone>) -> Answer<StatusCode> {
    let path = String::from_utf8_lossy(inside.path(&asked.path)?.as_bytes()).into_owned();
    let mut arguments = vec!["clone".to_owned()];
    if let Some(branch) = asked.branch.as_deref().filter(|branch| !branch.is_empty()) {
        arguments.extend(["--branch".to_owned(), plain("branch", branch)?.to_owned()]);
    }
    if let Some(depth) = asked.depth.filter(|depth| *depth > 0) {
        arguments.push(format!("--depth={depth}"));
    }
    arguments.extend(["--".to_owned(), plain("url", &asked.url)?.to_owned(), plain("path", &path)?.to_owned()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Repository::nowhere(&inside).known_as(&asked.credentials, asked.insecure_skip_tls == Some(true)).git(&arguments).await?;
    if let Some(commit) = asked.commit_id.as_deref().filter(|commit| !commit.is_empty()) {
        Repository::at(&inside, &asked.path).git(&["checkout", "--quiet", plain("commit_id", commit)?, "--"]).await?;
    }
    Ok(StatusCode::OK)
}

/// `GET /git/status`.
pub(super) async fn status(inside: Inside, QueryOf(asked): QueryOf<InRepository>) -> Answer<Json<Status>> {
    let arguments = ["status", "--porcelain=v2", "--branch", "--untracked-files=all", "-z"];
    Ok(Json(parsing::status(&Repository::at(&inside, &asked.path).git(&arguments).await?)))
}

/// `POST /git/add`.
pub(super) async fn add(inside: Inside, JsonBody(asked): JsonBody<GitFiles>) -> Answer<StatusCode> {
    let arguments: Vec<&str> = ["add", "--"].into_iter().chain(asked.files.iter().map(String::as_str)).collect();
    Repository::at(&inside, &asked.path).git(&arguments).await?;
    Ok(StatusCode::OK)
}

/// `POST /git/commit`.
pub(super) async fn commit(inside: Inside, JsonBody(asked): JsonBody<Commit>) -> Answer<Json<serde_json::Value>> {
    let mut repository = Repository::at(&inside, &asked.path);
    for (name, value) in [
        ("AUTHOR_NAME", &asked.author),
        ("COMMITTER_NAME", &asked.author),
        ("AUTHOR_EMAIL", &asked.email),
        ("COMMITTER_EMAIL", &asked.email),
    ] {
        repository.env.insert(format!("GIT_{name}"), value.clone());
    }
    let message = format!("--message={}", asked.message);
    let arguments = ["commit", "--quiet", &message, "--allow-empty"];
    repository.git(if asked.allow_empty == Some(true) { &arguments } else { &arguments[..3] }).await?;
    let hash = repository.git(&["rev-parse", "HEAD"]).await?;
    Ok(Json(serde_json::json!({ "hash": hash.trim() })))
}

/// `GET /git/history`.
pub(super) async fn history(inside: Inside, QueryOf(asked): QueryOf<InRepository>) -> Answer<Json<Vec<serde_json::Value>>> {
    Ok(Json(parsing::history(&Repository::at(&inside, &asked.path).git(&["log", HISTORY]).await?)))
}

/// `GET /git/branches`.
pub(super) async fn branches(inside: Inside, QueryOf(asked): QueryOf<InRepository>) -> Answer<Json<serde_json::Value>> {
    let repository = Repository::at(&inside, &asked.path);
    let names = repository.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]).await?;
    let current = repository.git(&["branch", "--show-current"]).await?;
    Ok(Json(serde_json::json!({ "branches": names.lines().collect::<Vec<_>>(), "current": current.trim() })))
}

/// `POST /git/branches`.
pub(super) async fn make_branch(inside: Inside, JsonBody(asked): JsonBody<Branch>) -> Answer<StatusCode> {
    Repository::at(&inside, &asked.path).git(&["checkout", "--quiet", "-b", plain("name", &asked.name)?, "--"]).await?;
    Ok(StatusCode::CREATED)
}

/// `DELETE /git/branches`.
pub(super) async fn delete_branch(inside: Inside, JsonBody(asked): JsonBody<Branch>) -> Answer<StatusCode> {
    Repository::at(&inside, &asked.path).git(&["branch", "--quiet", "-D", "--", plain("name", &asked.name)?]).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /git/checkout`.
pub(super) async fn checkout(inside: Inside, JsonBody(asked): JsonBody<Checkout>) -> Answer<StatusCode> {
    Repository::at(&inside, &asked.path).git(&["checkout", "--quiet", plain("branch", &asked.branch)?, "--"]).await?;
    Ok(StatusCode::OK)
}

/// `POST /git/pull`.
pub(super) async fn pull(inside: Inside, JsonBody(asked): JsonBody<Transfer>) -> Answer<StatusCode> {
    transfer(&inside, &asked, vec!["pull", "--quiet"]).await
}

/// `POST /git/push`.
pub(super) async fn push(inside: Inside, JsonBody(asked): JsonBody<Transfer>) -> Answer<StatusCode> {
    let up = asked.set_upstream == Some(true);
    transfer(&inside, &asked, if up { vec!["push", "--quiet", "--set-upstream"] } else { vec!["push", "--quiet"] }).await
}

async fn transfer(inside: &Inside, asked: &Transfer, mut arguments: Vec<&str>) -> Answer<StatusCode> {
    let given = |text: &'_ Option<String>| text.clone().filter(|text| !text.is_empty());
    let (remote, branch) = (given(&asked.remote), given(&asked.branch));
    let repository = Repository::at(inside, &asked.path).known_as(&asked.credentials, false);
    // A new branch has nothing it belongs to yet: it is pushed under its own name, as Daytona does.
    let current = match (&branch, arguments.first()) {
        (Some(_), _) => branch,
        (None, Some(&"push")) => {
            Some(repository.git(&["branch", "--show-current"]).await?.trim().to_owned()).filter(|name| !name.is_empty())
        }
        (None, _) => None,
    };
    let remote = remote.unwrap_or_else(|| "origin".to_owned());
    arguments.push("--");
    arguments.push(plain("remote", &remote)?);
    if let Some(branch) = &current {
        arguments.push(plain("branch", branch)?);
    }
    repository.git(&arguments).await?;
    Ok(StatusCode::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_let_in_is_told_in_the_environment_alone() {
        let credentials = Credentials { username: Some("ada".to_owned()), password: Some("s3cret".to_owned()) };
        let env = let_in(&credentials, true);
        assert_eq!(env["GIT_CONFIG_VALUE_0"], "Authorization: Basic YWRhOnMzY3JldA==");
        assert_eq!((env["GIT_CONFIG_COUNT"].as_str(), env["GIT_CONFIG_KEY_1"].as_str()), ("2", "http.sslVerify"));
        assert_eq!(let_in(&Credentials::default(), false).len(), 1);
    }

    #[test]
    fn no_name_is_an_option() {
        for (name, good) in [("main", true), ("a/b", true), ("--upload-pack=x", false), ("-f", false), ("", false)] {
            assert_eq!(plain("name", name).is_ok(), good, "{name}");
        }
    }
}
