//! Secrets of the control plane.

use std::collections::BTreeMap;

/// `GET /secrets`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SecretQuery {
    pub(crate) limit: Option<usize>,
    pub(crate) next_token: Option<String>,
}

/// `POST /secrets`. Not printable: it holds the value.
#[derive(serde::Deserialize)]
pub(crate) struct NewSecret {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) metadata: Option<BTreeMap<String, String>>,
}

/// `POST /secrets/{id}`.
#[derive(serde::Deserialize)]
pub(crate) struct SecretUpdate {
    pub(crate) value: String,
    pub(crate) metadata: Option<BTreeMap<String, String>>,
}

/// What is told of a secret.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretDto {
    #[serde(rename = "secretID")]
    pub(crate) secret_id: String,
    pub(crate) name: String,
    pub(crate) current_version: u64,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
}
