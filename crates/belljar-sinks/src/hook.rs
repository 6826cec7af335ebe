//! Events as a message to a webhook of the operator, signed as all are.

use belljar_webhook::SharedSecret;

use crate::sink::{Batch, Format, SinkError, send};

pub(crate) async fn post(
    http: &reqwest::Client,
    url: &str,
    secret: &SharedSecret,
    batch: &Batch<'_>,
    format: Format,
) -> Result<(), SinkError> {
    let number = |record: Option<&(belljar_types::AuditRecord, String)>| record.map_or(0, |(record, _)| record.sequence);
    let id = format!("audit_{}_{}_{}", batch.project, number(batch.records.first()), number(batch.records.last()));
    // Lines are JSON as they are; to read them again would change their bytes, and with them their hashes.
    let body = format!(
        r#"{{"type":"audit.events","project":"{}","format":"{}","events":[{}]}}"#,
        batch.project,
        match format {
            Format::Jsonl => "jsonl",
            Format::Ocsf => "ocsf",
        },
        batch.lines(format).join(",")
    );
    send(secret.signed(http.post(url), &id, body)).await
}
