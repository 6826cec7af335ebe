//! Builds of templates on the control plane.

/// A build that is asked for, in whichever version of the API.
#[derive(Debug, Default, serde::Deserialize)]
pub(crate) struct BuildRequest {
    pub(crate) name: Option<String>,
    pub(crate) alias: Option<String>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
}

/// A build that may be started.
#[derive(Debug, serde::Serialize)]
pub(crate) struct BuildAccepted {
    #[serde(rename = "templateID")]
    pub(crate) template_id: String,
    #[serde(rename = "buildID")]
    pub(crate) build_id: String,
    pub(crate) public: bool,
    pub(crate) names: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) aliases: Vec<String>,
}

/// What a build is to do.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuildStart {
    pub(crate) from_image: Option<String>,
    pub(crate) from_template: Option<String>,
    pub(crate) from_image_registry: Option<serde_json::Value>,
    #[serde(default)]
    pub(crate) force: bool,
    #[serde(default)]
    pub(crate) steps: Vec<StepDto>,
    pub(crate) start_cmd: Option<String>,
    pub(crate) ready_cmd: Option<String>,
}

/// One step.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepDto {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    pub(crate) files_hash: Option<String>,
    #[serde(default)]
    pub(crate) force: Option<bool>,
}

/// Where files are to be sent.
#[derive(Debug, serde::Serialize)]
pub(crate) struct UploadLink {
    pub(crate) present: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
}

/// How a build stands.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuildStatus {
    #[serde(rename = "templateID")]
    pub(crate) template_id: String,
    #[serde(rename = "buildID")]
    pub(crate) build_id: String,
    pub(crate) status: &'static str,
    pub(crate) logs: Vec<String>,
    pub(crate) log_entries: Vec<LogEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Reason>,
}

/// A line of a build's log.
#[derive(Debug, serde::Serialize)]
pub(crate) struct LogEntry {
    pub(crate) timestamp: String,
    pub(crate) message: String,
    pub(crate) level: &'static str,
    pub(crate) step: String,
}

/// Why a build failed.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reason {
    pub(crate) message: String,
    pub(crate) step: String,
    pub(crate) log_entries: Vec<LogEntry>,
}

/// Which lines of a log are wanted.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogQuery {
    pub(crate) logs_offset: Option<usize>,
    pub(crate) limit: Option<usize>,
    pub(crate) level: Option<String>,
}

/// Tags for a build that has one.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct AssignTags {
    pub(crate) target: String,
    pub(crate) tags: Vec<String>,
}

/// Tags to take off.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct DeleteTags {
    pub(crate) name: String,
    pub(crate) tags: Vec<String>,
}

/// What is to be changed about a template.
#[derive(Debug, Default, serde::Deserialize)]
pub(crate) struct TemplateChange {
    pub(crate) public: Option<bool>,
}
