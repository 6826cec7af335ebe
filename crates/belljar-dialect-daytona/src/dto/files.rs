//! Files of the toolbox.

/// A file as clients know it.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileInfoDto {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) is_dir: bool,
    pub(crate) size: u64,
    pub(crate) mode: String,
    pub(crate) mod_time: String,
    pub(crate) modified_at: String,
    pub(crate) owner: String,
    pub(crate) group: String,
    pub(crate) permissions: String,
}

/// The query of most calls.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct FileQuery {
    pub(crate) path: Option<String>,
    pub(crate) mode: Option<String>,
    pub(crate) recursive: Option<bool>,
    pub(crate) depth: Option<u32>,
}

/// `GET /files/find` and `/files/search`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct FindQuery {
    pub(crate) path: String,
    pub(crate) pattern: String,
}

/// `POST /files/move`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct MoveQuery {
    pub(crate) source: String,
    pub(crate) destination: String,
}

/// `POST /files/permissions`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct PermissionsQuery {
    pub(crate) path: String,
    pub(crate) mode: Option<String>,
    pub(crate) owner: Option<String>,
    pub(crate) group: Option<String>,
}

/// `POST /files/replace`.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Replace {
    pub(crate) files: Vec<String>,
    pub(crate) pattern: String,
    #[serde(default)]
    pub(crate) new_value: Option<String>,
}

/// What came of it for one file.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Replaced {
    pub(crate) file: String,
    pub(crate) success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// `POST /files/bulk-download`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct DownloadPaths {
    pub(crate) paths: Vec<String>,
}
