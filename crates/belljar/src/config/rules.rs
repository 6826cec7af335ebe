//! `[network]`, `[webhooks]` and `[policies]`: what the operator decides about the ways out, and what projects and templates may at most.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_core::Policies;
use belljar_core::policy::{Cidr, Format, NamePattern, Operator, Policy, parse, profile};
use belljar_types::{Invalid, ProjectId, TemplateName};
use serde::Deserialize;

use crate::registries;

/// The list of hosts that the profile `packages` is about.
const REGISTRIES: &str = "registries";

/// `[network]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NetworkConfig {
    pub(crate) nameservers: Option<Vec<SocketAddr>>,
    pub(crate) namespace: Option<PathBuf>,
    pub(crate) reachable: Vec<Cidr>,
    pub(crate) unreachable: Vec<Cidr>,
    pub(crate) sets: BTreeMap<String, Vec<NamePattern>>,
    pub(crate) certificates: Option<PathBuf>,
    pub(crate) filtered_slots: Option<u32>,
}

/// `[webhooks]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WebhooksConfig {
    pub(crate) reachable: Vec<Cidr>,
    pub(crate) plain_http: bool,
}

/// `[policies]`: the name of a profile or the path of a document.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PoliciesConfig {
    pub(crate) default: Option<String>,
    pub(crate) projects: BTreeMap<ProjectId, String>,
    pub(crate) templates: BTreeMap<TemplateName, String>,
}

/// Slots of sandboxes with a policy that are kept ready when nobody says.
const FILTERED_SLOTS: u32 = 2;

impl NetworkConfig {
    /// How many slots are kept ready for sandboxes that are let out; with none, nobody is.
    pub(crate) fn filtered_slots(&self) -> u32 {
        self.filtered_slots.unwrap_or(FILTERED_SLOTS)
    }

    /// The operator's part of every policy. A list of registries that nobody wrote is what the machine's own package managers use.
    pub(crate) fn operator(&self) -> Operator {
        let mut sets = self.sets.clone();
        sets.entry(REGISTRIES.to_owned()).or_insert_with(registries::of_this_machine);
        Operator { sets, reachable: self.reachable.clone(), unreachable: self.unreachable.clone() }
    }
}

impl PoliciesConfig {
    pub(crate) fn load(&self, operator: Operator) -> Result<Policies, Invalid> {
        let read = |field: &str, text: &String| read_policy(text).map_err(|problem| Invalid::new(field, problem, text));
        Ok(Policies {
            operator: Arc::new(operator),
            default: self.default.as_ref().map(|text| read("policies.default", text)).transpose()?,
            projects: self
                .projects
                .iter()
                .map(|(id, text)| Ok((id.clone(), read("policies.projects", text)?)))
                .collect::<Result<_, Invalid>>()?,
            templates: self
                .templates
                .iter()
                .map(|(name, text)| Ok((name.clone(), read("policies.templates", text)?)))
                .collect::<Result<_, Invalid>>()?,
        })
    }
}

/// A profile by its name, or a document by its path; says what is wrong with it.
pub(crate) fn read_policy(text: &str) -> Result<Policy, String> {
    let path = Path::new(text);
    if !text.contains(['/', '.']) {
        return profile(text).map_err(|error| error.to_string());
    }
    let content = std::fs::read_to_string(path).map_err(|error| format!("a file that can be read: {error}"))?;
    parse(&content, Format::of_file_name(text)).map_err(|error| error.to_string())
}
