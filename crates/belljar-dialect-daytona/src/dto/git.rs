//! Repositories of the toolbox.

/// The query of what is only looked at.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct InRepository {
    pub(crate) path: String,
}

/// Who is let in at a remote.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Credentials {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
}

/// `POST /git/clone`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Clone {
    pub(crate) url: String,
    pub(crate) path: String,
    pub(crate) branch: Option<String>,
    pub(crate) commit_id: Option<String>,
    pub(crate) depth: Option<u32>,
    pub(crate) insecure_skip_tls: Option<bool>,
    #[serde(flatten)]
    pub(crate) credentials: Credentials,
}

/// `POST /git/add`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct GitFiles {
    pub(crate) path: String,
    pub(crate) files: Vec<String>,
}

/// `POST /git/commit`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Commit {
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) author: String,
    pub(crate) email: String,
    pub(crate) allow_empty: Option<bool>,
}

/// `POST` and `DELETE /git/branches`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Branch {
    pub(crate) path: String,
    pub(crate) name: String,
}

/// `POST /git/checkout`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Checkout {
    pub(crate) path: String,
    pub(crate) branch: String,
}

/// `POST /git/push` and `/git/pull`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Transfer {
    pub(crate) path: String,
    pub(crate) remote: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) set_upstream: Option<bool>,
    #[serde(flatten)]
    pub(crate) credentials: Credentials,
}

/// `POST /git/init`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct NewRepository {
    pub(crate) path: String,
    pub(crate) bare: Option<bool>,
    pub(crate) initial_branch: Option<String>,
}

/// `POST /git/reset`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Reset {
    pub(crate) path: String,
    pub(crate) mode: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) files: Option<Vec<String>>,
}

/// `POST /git/restore`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Restore {
    pub(crate) path: String,
    pub(crate) files: Vec<String>,
    pub(crate) source: Option<String>,
    pub(crate) staged: Option<bool>,
    pub(crate) worktree: Option<bool>,
}

/// `POST /git/remotes`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct NewRemote {
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) fetch: Option<bool>,
    pub(crate) overwrite: Option<bool>,
}

/// `GET /git/config`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct SettingQuery {
    pub(crate) key: String,
    pub(crate) scope: Option<String>,
    pub(crate) path: Option<String>,
}

/// `POST /git/config`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct GitSetting {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) scope: Option<String>,
    pub(crate) path: Option<String>,
}

/// `POST /git/config/user`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct GitUser {
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) scope: Option<String>,
    pub(crate) path: Option<String>,
}

/// How a repository stands.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) current_branch: String,
    pub(crate) detached: bool,
    pub(crate) upstream: String,
    pub(crate) branch_published: bool,
    pub(crate) ahead: u32,
    pub(crate) behind: u32,
    pub(crate) file_status: Vec<StatusOfFile>,
}

/// How a file of it stands.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct StatusOfFile {
    pub(crate) name: String,
    /// The name it had before.
    pub(crate) extra: String,
    pub(crate) staging: &'static str,
    pub(crate) worktree: &'static str,
}
