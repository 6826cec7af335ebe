//! What was counted, and how much of it somebody may have.

use async_trait::async_trait;
use belljar_ports::{MeteringStore, StoreError};
use belljar_types::{AtLimit, Budget, BudgetSubject, Consumption, Epoch, KeyId, Message, Meter, MeterReading, SandboxId, Timestamp};
use sqlx::{AssertSqlSafe, Row as _};

use super::epochs::{commit, fenced, open};
use super::projects::unreadable;
use super::{Backend, Row, webhooks};
use crate::convert::{moment, signed, unsigned};
use crate::errors::failed;

const READING: &str =
    "SELECT sandbox AS id, sandbox, project, key_id, cpu_micros, wall_millis, memory_mib_seconds, disk_bytes, egress_bytes,
    ingress_bytes, executions, read_at FROM meter_readings";
const SUMS: &str = "SELECT CAST(COALESCE(SUM(cpu_micros), 0) AS BIGINT), CAST(COALESCE(SUM(wall_millis), 0) AS BIGINT),
    CAST(COALESCE(SUM(memory_mib_seconds), 0) AS BIGINT), CAST(COALESCE(SUM(disk_bytes), 0) AS BIGINT),
    CAST(COALESCE(SUM(egress_bytes), 0) AS BIGINT), CAST(COALESCE(SUM(ingress_bytes), 0) AS BIGINT),
    CAST(COALESCE(SUM(executions), 0) AS BIGINT) FROM meter_readings";

/// The column that a subject is found by, and what it has to be.
fn whose(subject: &BudgetSubject) -> (&'static str, &str) {
    match subject {
        BudgetSubject::Project(id) => ("project", id.as_str()),
        BudgetSubject::Key(id) => ("key_id", id.as_str()),
        BudgetSubject::Sandbox(id) => ("sandbox", id.as_str()),
    }
}

#[async_trait]
impl MeteringStore for Backend {
    async fn write_meter_reading(&self, epoch: Epoch, reading: &MeterReading) -> Result<(), StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        let total = &reading.total;
        sqlx::query(
            "INSERT INTO meter_readings (sandbox, project, key_id, cpu_micros, wall_millis, memory_mib_seconds, disk_bytes, egress_bytes,
                 ingress_bytes, executions, read_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
             ON CONFLICT (sandbox) DO UPDATE SET cpu_micros = excluded.cpu_micros, wall_millis = excluded.wall_millis,
                 memory_mib_seconds = excluded.memory_mib_seconds, disk_bytes = excluded.disk_bytes, egress_bytes = excluded.egress_bytes,
                 ingress_bytes = excluded.ingress_bytes, executions = excluded.executions, read_at = excluded.read_at",
        )
        .bind(reading.sandbox.as_str())
        .bind(reading.project.as_str())
        .bind(reading.key.as_ref().map(KeyId::as_str))
        .bind(signed(total.cpu_micros))
        .bind(signed(total.wall_millis))
        .bind(signed(total.memory_mib_seconds))
        .bind(signed(total.disk_bytes))
        .bind(signed(total.egress_bytes))
        .bind(signed(total.ingress_bytes))
        .bind(signed(total.executions))
        .bind(moment(reading.read_at))
        .execute(&mut *transaction)
        .await
        .map_err(failed("cannot write a meter reading"))?;
        commit(transaction).await
    }

    async fn meter_reading(&self, sandbox: &SandboxId) -> Result<Option<MeterReading>, StoreError> {
        let row = sqlx::query(AssertSqlSafe(format!("{READING} WHERE sandbox = $1")))
            .bind(sandbox.as_str())
            .fetch_optional(&self.read)
            .await
            .map_err(failed("cannot read a meter"))?;
        row.map(|row| read(&row)).transpose()
    }

    async fn meter_readings(&self, subject: &BudgetSubject, since: Timestamp) -> Result<Vec<MeterReading>, StoreError> {
        let (column, id) = whose(subject);
        let rows = sqlx::query(AssertSqlSafe(format!("{READING} WHERE {column} = $1 AND read_at >= $2 ORDER BY read_at, sandbox")))
            .bind(id)
            .bind(moment(since))
            .fetch_all(&self.read)
            .await
            .map_err(failed("cannot list meter readings"))?;
        rows.iter().map(read).collect()
    }

    async fn consumed(&self, subject: &BudgetSubject) -> Result<Consumption, StoreError> {
        let (column, id) = whose(subject);
        let sums: (i64, i64, i64, i64, i64, i64, i64) = sqlx::query_as(AssertSqlSafe(format!("{SUMS} WHERE {column} = $1")))
            .bind(id)
            .fetch_one(&self.read)
            .await
            .map_err(failed("cannot sum up meter readings"))?;
        Ok(Consumption {
            cpu_micros: unsigned(sums.0),
            wall_millis: unsigned(sums.1),
            memory_mib_seconds: unsigned(sums.2),
            disk_bytes: unsigned(sums.3),
            egress_bytes: unsigned(sums.4),
            ingress_bytes: unsigned(sums.5),
            executions: unsigned(sums.6),
        })
    }

    async fn set_budget(&self, budget: &Budget) -> Result<(), StoreError> {
        let mut transaction = open(self).await?;
        sqlx::query(
            "INSERT INTO budgets (subject, meter, soft, hard, at_limit, warned_at) VALUES ($1, $2, $3, $4, $5, NULL)
             ON CONFLICT (subject, meter) DO UPDATE SET soft = excluded.soft, hard = excluded.hard, at_limit = excluded.at_limit,
                 warned_at = NULL",
        )
        .bind(budget.subject.to_string())
        .bind(budget.meter.as_str())
        .bind(budget.soft.map(signed))
        .bind(budget.hard.map(signed))
        .bind(budget.at_limit.as_str())
        .execute(&mut *transaction)
        .await
        .map_err(failed("cannot set a budget"))?;
        commit(transaction).await
    }

    async fn remove_budget(&self, subject: &BudgetSubject, meter: Meter) -> Result<bool, StoreError> {
        let mut transaction = open(self).await?;
        let removed = sqlx::query("DELETE FROM budgets WHERE subject = $1 AND meter = $2")
            .bind(subject.to_string())
            .bind(meter.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot remove a budget"))?;
        commit(transaction).await?;
        Ok(removed.rows_affected() > 0)
    }

    async fn budgets(&self) -> Result<Vec<Budget>, StoreError> {
        let rows =
            sqlx::query("SELECT subject AS id, subject, meter, soft, hard, at_limit, warned_at FROM budgets ORDER BY subject, meter")
                .fetch_all(&self.read)
                .await
                .map_err(failed("cannot list budgets"))?;
        rows.iter().map(read_budget).collect()
    }

    async fn warn_of_budget(&self, epoch: Epoch, budget: &Budget, at: Timestamp, message: &Message) -> Result<bool, StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        let noted = sqlx::query("UPDATE budgets SET warned_at = $4 WHERE subject = $1 AND meter = $2 AND soft = $3 AND warned_at IS NULL")
            .bind(budget.subject.to_string())
            .bind(budget.meter.as_str())
            .bind(budget.soft.map(signed))
            .bind(moment(at))
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot note that a budget is nearly used up"))?;
        let first = noted.rows_affected() > 0;
        if first {
            webhooks::enter(&mut transaction, message).await?;
        }
        commit(transaction).await?;
        Ok(first)
    }
}

fn read(row: &Row) -> Result<MeterReading, StoreError> {
    let corrupt = |problem: &dyn std::fmt::Display| unreadable("meter reading", row, problem);
    let text = |name: &str| row.try_get::<String, _>(name).map_err(|error| corrupt(&error));
    let number = |name: &str| row.try_get::<i64, _>(name).map(unsigned).map_err(|error| corrupt(&error));
    let key: Option<String> = row.try_get("key_id").map_err(|error| corrupt(&error))?;
    Ok(MeterReading {
        sandbox: text("sandbox")?.parse().map_err(|error| corrupt(&error))?,
        project: text("project")?.parse().map_err(|error| corrupt(&error))?,
        key: key.map(|key| key.parse()).transpose().map_err(|error| corrupt(&error))?,
        total: Consumption {
            cpu_micros: number("cpu_micros")?,
            wall_millis: number("wall_millis")?,
            memory_mib_seconds: number("memory_mib_seconds")?,
            disk_bytes: number("disk_bytes")?,
            egress_bytes: number("egress_bytes")?,
            ingress_bytes: number("ingress_bytes")?,
            executions: number("executions")?,
        },
        read_at: Timestamp(number("read_at")?),
    })
}

fn read_budget(row: &Row) -> Result<Budget, StoreError> {
    let corrupt = |problem: &dyn std::fmt::Display| unreadable("budget", row, problem);
    let text = |name: &str| row.try_get::<String, _>(name).map_err(|error| corrupt(&error));
    let number = |name: &str| row.try_get::<Option<i64>, _>(name).map(|number| number.map(unsigned)).map_err(|error| corrupt(&error));
    Ok(Budget {
        subject: text("subject")?.parse().map_err(|error| corrupt(&error))?,
        meter: text("meter")?.parse().map_err(|error| corrupt(&error))?,
        soft: number("soft")?,
        hard: number("hard")?,
        at_limit: if text("at_limit")? == AtLimit::Kill.as_str() { AtLimit::Kill } else { AtLimit::Pause },
        warned_at: number("warned_at")?.map(Timestamp),
    })
}
