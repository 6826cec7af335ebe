//! The sandbox that a call of the toolbox is for, in use: who acts in it, where, and what its processes find in their environment.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use belljar_core::{GuestError, Lease, Session};
use belljar_http::clean_path;
use belljar_types::{GuestPath, ProcessId, ProcessSpec, Timestamp, UserName};

use super::find::{Found, number};
use super::sandboxes::Answer;
use crate::errors::{ApiError, of_guest};
use crate::state::DaytonaState;
use crate::translate::{guest_path, user_of};

/// No process has this name: the queue is for what is not there yet.
const MAKING: &str = "daytona-making";

/// A sandbox that runs.
pub(super) struct Inside {
    pub(super) session: Session,
    pub(super) user: Option<UserName>,
    pub(super) state: DaytonaState,
}

impl FromRequestParts<DaytonaState> for Inside {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &DaytonaState) -> Result<Self, ApiError> {
        let Found { who, sandbox } = Found::from_request_parts(parts, state).await?;
        let session = state.service.open(&who, &sandbox.id).await?;
        // Daytona's sandboxes live for as long as they are used: half of a life is given anew before it is over.
        let longest = state.service.config().max_lease;
        if sandbox.expires_at.is_some_and(|at| Timestamp::now().until(at) < longest / 2) {
            state.service.set_lease(&who, &sandbox.id, Lease::AtLeast(longest)).await?;
        }
        Ok(Self { user: user_of(&sandbox), session, state: state.clone() })
    }
}

impl Inside {
    /// What the agent gave, or its refusal in Daytona's words.
    pub(super) async fn done<T>(&self, result: Result<T, GuestError>) -> Answer<T> {
        match result {
            Ok(value) => Ok(value),
            Err(error) => Err(of_guest(&self.session, error).await),
        }
    }

    /// A path of a request: what is relative begins where processes do.
    pub(super) fn path(&self, text: &str) -> Answer<GuestPath> {
        guest_path(text, self.session.sandbox().spec.defaults.workdir.as_deref())
    }

    /// A place in the queue of those who make something in the sandbox that is to have a name of its own: two who ask at once must not both get it.
    pub(super) fn making(&self) -> belljar_http::Place<'_> {
        let nobody: ProcessId = MAKING.parse().expect("a valid id");
        self.state.turns.place((self.session.sandbox().id.clone(), nobody))
    }

    pub(super) fn user(&self) -> Option<&UserName> {
        self.user.as_ref()
    }

    /// A process with what every process of the sandbox has under Daytona.
    pub(super) fn process<A: AsRef<[u8]>>(&self, argv: impl IntoIterator<Item = A>, env: BTreeMap<String, String>) -> ProcessSpec {
        let mut all = self.own_env();
        all.extend(env);
        ProcessSpec { env: all, user: self.user.clone(), ..ProcessSpec::new(argv) }
    }

    pub(super) fn own_env(&self) -> BTreeMap<String, String> {
        let sandbox = self.session.sandbox();
        let user = self.user.as_ref().map_or(UserName::DEFAULT, UserName::as_str);
        let own = [
            ("DAYTONA_SANDBOX_ID", sandbox.id.as_str()),
            ("DAYTONA_SANDBOX_SNAPSHOT", sandbox.template.as_str()),
            ("DAYTONA_SANDBOX_USER", user),
        ];
        let is_free = |name: &str| !sandbox.spec.env.contains_key(name);
        own.into_iter().filter(|(name, _)| is_free(name)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

fn directory(path: &[u8]) -> Json<serde_json::Value> {
    Json(serde_json::json!({ "dir": clean_path(&String::from_utf8_lossy(path)) }))
}

/// `GET /user-home-dir`.
pub(super) async fn home(inside: Inside) -> Answer<Json<serde_json::Value>> {
    let home = inside.session.stat(&GuestPath::new(".")?, inside.user()).await;
    Ok(directory(inside.done(home).await?.path.as_bytes()))
}

/// `GET /work-dir`: where processes begin.
pub(super) async fn work(inside: Inside) -> Answer<Json<serde_json::Value>> {
    match inside.session.sandbox().spec.defaults.workdir.as_deref() {
        Some(directory_of_template) => Ok(directory(directory_of_template.as_bytes())),
        None => home(inside).await,
    }
}

/// `GET /port`.
pub(super) async fn ports(inside: Inside) -> Answer<Json<serde_json::Value>> {
    let found = inside.session.ports().await;
    let ports: std::collections::BTreeSet<u16> = inside.done(found).await?.iter().map(|port| port.port).collect();
    Ok(Json(serde_json::json!({ "ports": ports })))
}

/// `GET /port/{port}/in-use`.
pub(super) async fn port_in_use(inside: Inside, Path((_sandbox, port)): Path<(String, String)>) -> Answer<Json<serde_json::Value>> {
    let port: u16 = number("port", &port)?;
    let found = inside.session.ports().await;
    Ok(Json(serde_json::json!({ "isInUse": inside.done(found).await?.iter().any(|one| one.port == port) })))
}

/// `GET /system/metrics`.
pub(super) async fn metrics(inside: Inside) -> Answer<Json<serde_json::Value>> {
    let seen = inside.session.metrics().await;
    let seen = inside.done(seen).await?;
    let now = jiff::Timestamp::now();
    Ok(Json(serde_json::json!({
        "timestamp": now.to_string(), "timestampUnix": now.as_second(),
        "cpuCount": seen.cpus, "cpuUsedPct": 0.0,
        "memTotal": seen.memory_total_bytes, "memUsed": seen.memory_used_bytes, "memCache": 0,
        "diskTotal": seen.disk_total_bytes, "diskUsed": seen.disk_used_bytes,
        "diskFree": seen.disk_total_bytes.saturating_sub(seen.disk_used_bytes),
    })))
}
