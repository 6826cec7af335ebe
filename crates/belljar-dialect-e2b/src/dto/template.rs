//! Templates of the control plane.

/// A template in a list.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateDto {
    #[serde(rename = "templateID")]
    pub(crate) template_id: String,
    #[serde(rename = "buildID")]
    pub(crate) build_id: String,
    pub(crate) cpu_count: u32,
    #[serde(rename = "memoryMB")]
    pub(crate) memory_mb: u64,
    #[serde(rename = "diskSizeMB")]
    pub(crate) disk_size_mb: u64,
    pub(crate) public: bool,
    pub(crate) aliases: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) created_by: Option<()>,
    pub(crate) last_spawned_at: Option<()>,
    pub(crate) spawn_count: u32,
    pub(crate) build_count: u32,
    pub(crate) build_status: &'static str,
    pub(crate) envd_version: &'static str,
}

/// Whether a name is taken, and by whom.
#[derive(Debug, serde::Serialize)]
pub(crate) struct TemplateAlias {
    #[serde(rename = "templateID")]
    pub(crate) template_id: String,
    pub(crate) public: bool,
}
