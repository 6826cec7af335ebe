//! Measurements. Belljar keeps no history here: what is answered is measured when it is asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use belljar_core::CoreError;
use belljar_http::{Authenticated, moment};
use belljar_types::{Sandbox, SandboxId, Timestamp};

use super::extract::{Asked, Which};
use super::sandboxes::live;
use crate::dto::{Metric, MetricsQuery};
use crate::errors::ApiError;
use crate::state::E2bState;
use crate::translate::cpu_count;

/// How long CPU time is watched to tell how much of it is used.
const LOOK: Duration = Duration::from_millis(100);
const MOST: usize = 100;

pub(super) async fn one(
    State(state): State<E2bState>,
    who: Authenticated,
    Which(id): Which,
    Asked(window): Asked<MetricsQuery>,
) -> Result<Json<Vec<Metric>>, ApiError> {
    let sandbox = live(&state, &who, &id).await?;
    let now = i64::try_from(Timestamp::now().0 / 1000).unwrap_or(i64::MAX);
    let outside = window.start.is_some_and(|start| start > now) || window.end.is_some_and(|end| end < now);
    if outside {
        return Ok(Json(Vec::new()));
    }
    Ok(Json(vec![measure(&state, &who, &sandbox).await?]))
}

/// `GET /sandboxes/metrics?sandbox_ids=a,b`.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Many {
    sandbox_ids: String,
}

pub(super) async fn many(
    State(state): State<E2bState>,
    who: Authenticated,
    Asked(Many { sandbox_ids }): Asked<Many>,
) -> Result<Json<serde_json::Value>, ApiError> {
    let ids: Vec<SandboxId> = sandbox_ids.split(',').filter_map(|id| id.trim().parse().ok()).collect();
    if ids.len() > MOST {
        return Err(ApiError::bad_request(format!("at most {MOST} sandboxes")));
    }
    let one = |id: SandboxId| {
        let (state, who) = (&state, &who);
        async move {
            let sandbox = live(state, who, &id).await.ok()?;
            Some((id.to_string(), measure(state, who, &sandbox).await.ok()?))
        }
    };
    let found = futures_util::future::join_all(ids.into_iter().map(one)).await;
    let found: BTreeMap<String, Metric> = found.into_iter().flatten().collect();
    Ok(Json(serde_json::json!({ "sandboxes": found })))
}

async fn measure(state: &E2bState, who: &Authenticated, sandbox: &Sandbox) -> Result<Metric, CoreError> {
    let before = state.service.usage(who, &sandbox.id).await?;
    tokio::time::sleep(LOOK).await;
    let usage = state.service.usage(who, &sandbox.id).await?;
    let now = Timestamp::now();
    let limits = &sandbox.spec.limits;
    let cpus = cpu_count(limits);
    let busy = Duration::from_micros(usage.cpu_micros.saturating_sub(before.cpu_micros)).as_secs_f64();
    Ok(Metric {
        timestamp: moment(now),
        timestamp_unix: i64::try_from(now.0 / 1000).unwrap_or(i64::MAX),
        cpu_count: cpus,
        cpu_used_pct: (busy / LOOK.as_secs_f64() / f64::from(cpus) * 10_000.0).round() / 100.0,
        mem_used: usage.memory_bytes,
        mem_total: limits.memory_bytes,
        mem_cache: 0,
        disk_used: usage.disk_bytes,
        disk_total: limits.disk_bytes,
    })
}
