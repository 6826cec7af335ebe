//! Who is told, and what still has to be.

use async_trait::async_trait;
use belljar_ports::{StoreError, WebhookStore};
use belljar_types::{Delivery, Epoch, ExecutionId, Message, ProjectId, Sandbox, SandboxState, Timestamp, Webhook, WebhookId};
use sqlx::Row as _;

use super::epochs::{commit, fenced, open};
use super::projects::unreadable;
use super::{Backend, Row, Transaction, sandboxes};
use crate::convert::{moment, signed, unsigned};
use crate::errors::failed;

/// The most that is handed out at once, whoever it is for.
const AT_ONCE: i64 = 256;

#[async_trait]
impl WebhookStore for Backend {
    async fn add_webhook(&self, webhook: &Webhook) -> Result<(), StoreError> {
        let mut transaction = open(self).await?;
        sqlx::query("INSERT INTO webhooks (id, project, url, kinds, created_at) VALUES ($1, $2, $3, $4, $5)")
            .bind(webhook.id.as_str())
            .bind(webhook.project.as_str())
            .bind(&webhook.url)
            .bind(written(webhook))
            .bind(moment(webhook.created_at))
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot enter a webhook"))?;
        commit(transaction).await
    }

    async fn webhooks(&self, project: &ProjectId) -> Result<Vec<Webhook>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, project, url, kinds, created_at, delivered_at, problem,
                 (SELECT COUNT(*) FROM deliveries WHERE deliveries.webhook = webhooks.id) AS waiting
             FROM webhooks WHERE project = $1 ORDER BY created_at, id",
        )
        .bind(project.as_str())
        .fetch_all(&self.read)
        .await
        .map_err(failed("cannot list webhooks"))?;
        rows.iter().map(read).collect()
    }

    async fn remove_webhook(&self, project: &ProjectId, id: &WebhookId) -> Result<bool, StoreError> {
        let mut transaction = open(self).await?;
        let removed = sqlx::query("DELETE FROM webhooks WHERE id = $1 AND project = $2")
            .bind(id.as_str())
            .bind(project.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot remove a webhook"))?;
        let was_there = removed.rows_affected() > 0;
        if was_there {
            sqlx::query("DELETE FROM deliveries WHERE webhook = $1")
                .bind(id.as_str())
                .execute(&mut *transaction)
                .await
                .map_err(failed("cannot drop what a webhook was to be told"))?;
        }
        commit(transaction).await?;
        Ok(was_there)
    }

    async fn record_and_tell(
        &self,
        epoch: Epoch,
        was: SandboxState,
        execution: &ExecutionId,
        sandbox: &Sandbox,
        message: &Message,
    ) -> Result<(), StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        sandboxes::write(&mut transaction, was, execution, sandbox).await?;
        enter(&mut transaction, message).await?;
        commit(transaction).await
    }

    async fn tell(&self, epoch: Epoch, message: &Message) -> Result<u64, StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        let receivers = enter(&mut transaction, message).await?;
        commit(transaction).await?;
        Ok(receivers)
    }

    async fn due_deliveries(&self, now: Timestamp, each: u32) -> Result<Vec<Delivery>, StoreError> {
        let rows = sqlx::query(
            "SELECT message AS id, webhook, url, sandbox, number, message, body, entered_at, attempts FROM (
                 SELECT d.webhook, w.url, d.sandbox, d.number, d.message, d.body, d.entered_at, d.attempts, d.due_at,
                     ROW_NUMBER() OVER (PARTITION BY d.webhook ORDER BY d.due_at, d.sandbox) AS place
                 FROM deliveries d JOIN webhooks w ON w.id = d.webhook
                 WHERE d.due_at <= $1 AND NOT EXISTS (
                     SELECT 1 FROM deliveries e WHERE e.webhook = d.webhook AND e.sandbox = d.sandbox AND e.number < d.number)
             ) AS first WHERE place <= $2 ORDER BY due_at LIMIT $3",
        )
        .bind(moment(now))
        .bind(i64::from(each))
        .bind(AT_ONCE)
        .fetch_all(&self.read)
        .await
        .map_err(failed("cannot look for what is to be told"))?;
        rows.iter().map(read_delivery).collect()
    }

    async fn next_delivery(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let next: Option<i64> = sqlx::query_scalar("SELECT MIN(due_at) FROM deliveries WHERE due_at > $1")
            .bind(moment(now))
            .fetch_one(&self.read)
            .await
            .map_err(failed("cannot look for what is to be told next"))?;
        Ok(next.map(|at| Timestamp(unsigned(at))))
    }

    async fn settle_delivery(&self, epoch: Epoch, delivery: &Delivery, at: Timestamp, problem: Option<&str>) -> Result<(), StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        sqlx::query("DELETE FROM deliveries WHERE webhook = $1 AND sandbox = $2 AND number = $3")
            .bind(delivery.webhook.as_str())
            .bind(delivery.sandbox.as_str())
            .bind(signed(delivery.number))
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot drop what was told"))?;
        sqlx::query("UPDATE webhooks SET delivered_at = COALESCE($2, delivered_at), problem = $3 WHERE id = $1")
            .bind(delivery.webhook.as_str())
            .bind(problem.is_none().then(|| moment(at)))
            .bind(problem)
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot note that a message arrived"))?;
        commit(transaction).await
    }

    async fn postpone_delivery(&self, epoch: Epoch, delivery: &Delivery, due_at: Timestamp, problem: &str) -> Result<(), StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        sqlx::query("UPDATE deliveries SET attempts = attempts + 1, due_at = $4 WHERE webhook = $1 AND sandbox = $2 AND number = $3")
            .bind(delivery.webhook.as_str())
            .bind(delivery.sandbox.as_str())
            .bind(signed(delivery.number))
            .bind(moment(due_at))
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot postpone a message"))?;
        sqlx::query("UPDATE webhooks SET problem = $2 WHERE id = $1")
            .bind(delivery.webhook.as_str())
            .bind(problem)
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot note that a message did not arrive"))?;
        commit(transaction).await
    }
}

/// Kinds between commas, so that one is found by what it stands between; nothing for all.
fn written(webhook: &Webhook) -> String {
    if webhook.kinds.is_empty() {
        return String::new();
    }
    let kinds: Vec<&str> = webhook.kinds.iter().map(|kind| kind.as_str()).collect();
    format!(",{},", kinds.join(","))
}

/// Enters a message for everybody who wants it, after all that is still to be told of its sandbox.
pub(super) async fn enter(transaction: &mut Transaction, message: &Message) -> Result<u64, StoreError> {
    let entered = sqlx::query(
        "INSERT INTO deliveries (webhook, sandbox, number, message, body, entered_at, attempts, due_at)
         SELECT w.id, $2, COALESCE((SELECT MAX(d.number) + 1 FROM deliveries d WHERE d.webhook = w.id AND d.sandbox = $2), 1), $3, $4, $5, 0, $5
         FROM webhooks w WHERE w.project = $1 AND (w.kinds = '' OR w.kinds LIKE $6)",
    )
    .bind(message.project.as_str())
    .bind(message.sandbox.as_str())
    .bind(&message.id)
    .bind(&message.body)
    .bind(moment(message.at))
    .bind(format!("%,{},%", message.kind))
    .execute(&mut **transaction)
    .await
    .map_err(failed("cannot enter what is to be told"))?;
    Ok(entered.rows_affected())
}

fn read(row: &Row) -> Result<Webhook, StoreError> {
    let corrupt = |problem: &dyn std::fmt::Display| unreadable("webhook", row, problem);
    let text = |name: &str| row.try_get::<String, _>(name).map_err(|error| corrupt(&error));
    let number = |name: &str| row.try_get::<i64, _>(name).map(unsigned).map_err(|error| corrupt(&error));
    let delivered: Option<i64> = row.try_get("delivered_at").map_err(|error| corrupt(&error))?;
    let kinds = text("kinds")?;
    Ok(Webhook {
        id: text("id")?.parse().map_err(|error| corrupt(&error))?,
        project: text("project")?.parse().map_err(|error| corrupt(&error))?,
        url: text("url")?,
        kinds: kinds
            .split(',')
            .filter(|kind| !kind.is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|error: belljar_types::Invalid| corrupt(&error))?,
        created_at: Timestamp(number("created_at")?),
        delivered_at: delivered.map(|at| Timestamp(unsigned(at))),
        problem: row.try_get("problem").map_err(|error| corrupt(&error))?,
        waiting: number("waiting")?,
    })
}

fn read_delivery(row: &Row) -> Result<Delivery, StoreError> {
    let corrupt = |problem: &dyn std::fmt::Display| unreadable("delivery", row, problem);
    let text = |name: &str| row.try_get::<String, _>(name).map_err(|error| corrupt(&error));
    let number = |name: &str| row.try_get::<i64, _>(name).map(unsigned).map_err(|error| corrupt(&error));
    Ok(Delivery {
        webhook: text("webhook")?.parse().map_err(|error| corrupt(&error))?,
        url: text("url")?,
        sandbox: text("sandbox")?.parse().map_err(|error| corrupt(&error))?,
        number: number("number")?,
        message: text("message")?,
        body: text("body")?,
        entered_at: Timestamp(number("entered_at")?),
        attempts: number("attempts")?,
    })
}
