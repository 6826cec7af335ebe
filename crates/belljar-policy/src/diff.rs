//! What changes from one document to another, field by field.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::document::Policy;

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which, dotted; rules by their names.
    pub field: String,
    /// What was there.
    pub before: Option<String>,
    /// What is there now.
    pub after: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.before, &self.after) {
            (None, Some(after)) => write!(f, "+ {} = {after}", self.field),
            (Some(before), None) => write!(f, "- {} = {before}", self.field),
            (before, after) => {
                write!(f, "~ {}: {} -> {}", self.field, before.as_deref().unwrap_or("nothing"), after.as_deref().unwrap_or("nothing"))
            }
        }
    }
}

/// All fields that differ, sorted by name.
pub fn diff(before: &Policy, after: &Policy) -> Vec<Change> {
    let (old, new) = (fields(before), fields(after));
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let change = |name: &String| Change { field: name.clone(), before: old.get(name).cloned(), after: new.get(name).cloned() };
    names.into_iter().map(change).filter(|change| change.before != change.after).collect()
}

fn fields(policy: &Policy) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if let Ok(value) = serde_json::to_value(policy) {
        flatten("", &value, &mut found);
    }
    found
}

fn flatten(path: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, found);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                // A rule that moved is the same rule.
                let name = item.get("id").and_then(Value::as_str).map_or_else(|| index.to_string(), str::to_owned);
                flatten(&format!("{path}[{name}]"), item, found);
            }
        }
        other => drop(found.insert(path.to_owned(), other.to_string())),
    }
}
