//! The server itself on the wire.

use serde::Serialize;
use utoipa::ToSchema;

use super::LimitsView;

/// Whoever asks.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Caller)]
pub(crate) struct WhoView {
    /// The key's public name.
    #[schema(example = "kk3v9m2x8c7p4q6w5z2n")]
    pub(crate) key: String,
    /// For whom it acts.
    #[schema(example = "default")]
    pub(crate) project: String,
    /// What it may do.
    #[schema(example = json!(["admin"]))]
    pub(crate) scopes: Vec<&'static str>,
}

/// One thing that an engine looked at on this host.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Check)]
pub(crate) struct CheckView {
    /// What was looked at.
    pub(crate) name: String,
    /// `pass`, `warn` or `fail`.
    #[schema(example = "pass")]
    pub(crate) outcome: &'static str,
    /// What was found.
    pub(crate) found: String,
    /// What to do about it.
    pub(crate) fix: String,
}

/// An engine.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Engine)]
pub(crate) struct EngineView {
    /// Its class.
    #[schema(example = "gvisor")]
    pub(crate) isolation: &'static str,
    /// Program and version.
    pub(crate) version: String,
    /// Whether it works here.
    pub(crate) works: bool,
    /// What was looked at.
    pub(crate) checks: Vec<CheckView>,
}

/// What `auto` takes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AutoChoice)]
pub(crate) struct AutoView {
    /// The class; `null` if nothing works.
    #[schema(required = true, example = "gvisor")]
    pub(crate) isolation: Option<&'static str>,
    /// Why.
    pub(crate) reason: String,
}

/// The server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Server)]
pub(crate) struct ServerView {
    /// Its version.
    #[schema(example = "0.1.0")]
    pub(crate) version: &'static str,
    /// What it can isolate with.
    pub(crate) engines: Vec<EngineView>,
    /// What `auto` takes.
    pub(crate) auto: AutoView,
    /// The template that is used when none is named.
    #[schema(example = "base")]
    pub(crate) default_template: String,
    /// Limits of a sandbox that asks for none.
    pub(crate) default_limits: LimitsView,
    /// The most a sandbox may ask for.
    #[schema(required = true)]
    pub(crate) max_limits: Option<LimitsView>,
    /// How long a sandbox lives that does not say.
    pub(crate) default_lease_seconds: u64,
    /// The longest lease.
    pub(crate) max_lease_seconds: u64,
    /// Most sandboxes at one time, of all projects.
    pub(crate) max_sandboxes: u32,
    /// Below it, `{port}-{id}` is a port of a sandbox.
    #[schema(required = true)]
    pub(crate) domain: Option<String>,
}

/// How the server is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub(crate) struct HealthView {
    /// `ok`.
    #[schema(example = "ok")]
    pub(crate) status: &'static str,
}
