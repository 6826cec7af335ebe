//! Bodies of E2B's code interpreter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Of `POST /execute`.
#[derive(Debug, Deserialize)]
pub(crate) struct Execute {
    pub(crate) code: String,
    pub(crate) context_id: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) env_vars: Option<BTreeMap<String, String>>,
}

/// Of `POST /contexts`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct NewContext {
    pub(crate) language: Option<String>,
    pub(crate) cwd: Option<String>,
}

/// A context as clients know it.
#[derive(Debug, Serialize)]
pub(crate) struct ContextDto {
    pub(crate) id: String,
    pub(crate) language: String,
    pub(crate) cwd: String,
}
