//! Events as OpenTelemetry log records, in the JSON that OTLP has over HTTP. One request, one answer: what a collector has not said yes to is
//! carried again, which a library that batches in the background could not promise.

use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::sink::{Batch, Format, SinkError, send};

/// "Info", as the protocol numbers it.
const SEVERITY: u32 = 9;

pub(crate) async fn post(http: &reqwest::Client, url: &str, batch: &Batch<'_>, format: Format) -> Result<(), SinkError> {
    send(http.post(url).header(CONTENT_TYPE, "application/json").body(request(batch, format).to_string())).await
}

fn request(batch: &Batch<'_>, format: Format) -> Value {
    let records = batch.records.iter().zip(batch.lines(format)).map(|((record, _), line)| {
        let event = &record.event;
        let mut attributes = vec![
            text("belljar.project", event.project.as_str()),
            json!({"key": "belljar.audit.sequence", "value": {"intValue": record.sequence.to_string()}}),
        ];
        attributes.extend(event.sandbox.as_ref().map(|sandbox| text("belljar.sandbox", sandbox.as_str())));
        attributes.extend(event.actor.key.as_ref().map(|key| text("belljar.key", key.as_str())));
        attributes.extend(event.actor.request.as_ref().map(|request| text("belljar.request", request)));
        json!({
            "timeUnixNano": (u128::from(record.at.0) * 1_000_000).to_string(),
            "severityNumber": SEVERITY,
            "severityText": "INFO",
            "eventName": format!("belljar.audit.{}", event.action.kind()),
            "body": {"stringValue": line},
            "attributes": attributes,
        })
    });
    json!({"resourceLogs": [{
        "resource": {"attributes": [text("service.name", "belljar"), text("service.version", env!("CARGO_PKG_VERSION"))]},
        "scopeLogs": [{"scope": {"name": "belljar.audit"}, "logRecords": records.collect::<Vec<_>>()}],
    }]})
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}
