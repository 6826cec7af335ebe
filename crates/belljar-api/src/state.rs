//! What the routes share.

use std::path::PathBuf;
use std::sync::Arc;

use belljar_core::Service;
use belljar_http::{Gate, Metrics, PortTokens};

/// Everything the routes need.
#[derive(Clone)]
pub struct ApiState {
    /// What does the work.
    pub service: Arc<Service>,
    /// Who may.
    pub gate: Arc<Gate>,
    /// Signs port tokens.
    pub port_tokens: Arc<PortTokens>,
    /// What `/metrics` gives.
    pub metrics: Arc<Metrics>,
    /// Below it, `{port}-{id}` is a port of a sandbox.
    pub domain: Option<String>,
    /// Where archives are kept while a template is made of them; on the disk that holds templates, not in memory.
    pub upload_directory: PathBuf,
    /// The largest archive, in bytes.
    pub max_upload_bytes: u64,
}
