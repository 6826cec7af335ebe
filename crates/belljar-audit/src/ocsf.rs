//! Events in the words of the Open Cybersecurity Schema Framework (1.3), for tools that read those. What has no place there goes into
//! `unmapped`, whole, so that nothing is lost.

use belljar_types::{AuditAction, AuditRecord, Phase};
use serde_json::{Value, json};

/// A class of the schema and its category.
struct Class {
    uid: u32,
    name: &'static str,
    category_uid: u32,
    category_name: &'static str,
}

const fn class(uid: u32, name: &'static str, category_uid: u32, category_name: &'static str) -> Class {
    Class { uid, name, category_uid, category_name }
}

const FILE: Class = class(1001, "File System Activity", 1, "System Activity");
const PROCESS: Class = class(1007, "Process Activity", 1, "System Activity");
const NETWORK: Class = class(4001, "Network Activity", 4, "Network Activity");
const ACCOUNT: Class = class(3001, "Account Change", 3, "Identity & Access Management");
const API: Class = class(6003, "API Activity", 6, "Application Activity");

/// An event as an OCSF object.
pub fn to_ocsf(record: &AuditRecord) -> Value {
    let event = &record.event;
    let (class, activity, status) = meaning(&event.action);
    let mut value = json!({
        "metadata": {
            "version": "1.3.0",
            "product": { "name": "Belljar", "vendor_name": "Belljar" },
            "sequence": record.sequence,
            "uid": format!("{}:{}", event.project, record.sequence),
            "correlation_uid": event.actor.request,
        },
        "time": record.at.0,
        "class_uid": class.uid,
        "class_name": class.name,
        "category_uid": class.category_uid,
        "category_name": class.category_name,
        "activity_id": activity,
        "type_uid": u64::from(class.uid) * 100 + u64::from(activity),
        "severity_id": 1,
        "status_id": status,
        "actor": { "user": { "uid": event.actor.key, "org": { "uid": event.project } } },
        "device": { "uid": event.sandbox, "type": "Virtual", "type_id": 6 },
        "unmapped": event.action,
    });
    let (name, detail) = detail(&event.action);
    if let Some(fields) = value.as_object_mut() {
        fields.insert(name.to_owned(), detail);
    }
    value
}

/// The class, the activity within it, and whether it succeeded (1), failed (2) or is not known (0).
fn meaning(action: &AuditAction) -> (Class, u32, u32) {
    let status = |phase: Phase| match phase {
        Phase::Intent => 0,
        Phase::Done => 1,
        Phase::Failed => 2,
    };
    match action {
        AuditAction::ExecStarted { .. } => (PROCESS, 1, 0),
        AuditAction::ExecEnded { exit_code, .. } => (PROCESS, 2, if *exit_code == Some(0) { 1 } else { 2 }),
        AuditAction::File { verb, phase, .. } => {
            let activity = match verb.as_str() {
                "write" | "make_directory" => 1,
                "read" => 2,
                "remove" => 4,
                "rename" => 5,
                "set_attribute" => 6,
                "set_mode" | "set_owner" => 7,
                _ => 99,
            };
            (FILE, activity, status(*phase))
        }
        AuditAction::Network { verdict, .. } => {
            if verdict == "allow" {
                (NETWORK, 1, 1)
            } else {
                (NETWORK, 5, 2)
            }
        }
        AuditAction::Port { .. } => (NETWORK, 1, 1),
        AuditAction::Access { phase, .. } => (ACCOUNT, 99, status(*phase)),
        AuditAction::Lifecycle { verb, phase, .. } => {
            let activity = match verb.as_str() {
                "create" | "fork" => 1,
                "change" | "pause" | "resume" | "rollback" => 3,
                "kill" | "end" => 4,
                _ => 99,
            };
            (API, activity, status(*phase))
        }
        AuditAction::Policy { phase, .. } | AuditAction::Template { phase, .. } => (API, 3, status(*phase)),
        AuditAction::SecretUse { .. } => (API, 2, 1),
        AuditAction::Artifact { .. } => (API, 2, 1),
        AuditAction::Budget { .. } | AuditAction::Log { .. } => (API, 99, 1),
    }
}

/// The field that the class has for what it is about.
fn detail(action: &AuditAction) -> (&'static str, Value) {
    match action {
        AuditAction::ExecStarted { process, argv, user, .. } => {
            ("process", json!({ "uid": process, "cmd_line": argv.join(" "), "user": { "name": user } }))
        }
        AuditAction::ExecEnded { process, .. } => ("process", json!({ "uid": process })),
        AuditAction::File { path, content, .. } => {
            let hashes =
                content.as_ref().and_then(|content| content.sha256.as_ref()).map(|sha256| json!([{ "algorithm_id": 3, "value": sha256 }]));
            ("file", json!({ "path": path, "size": content.as_ref().map(|content| content.bytes), "hashes": hashes }))
        }
        AuditAction::Network { host, port, .. } => ("dst_endpoint", json!({ "hostname": host, "port": port })),
        AuditAction::Port { port, .. } => ("dst_endpoint", json!({ "port": port })),
        AuditAction::Access { subject, .. } => ("user", json!({ "uid": subject })),
        other => ("api", json!({ "operation": other.kind() })),
    }
}
