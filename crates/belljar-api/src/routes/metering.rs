//! Usage and budgets: what somebody used, what it costs, and where it ends.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_http::{Authenticated, JsonBody, Problem, QueryOf};
use belljar_types::{AtLimit, Budget, Scope, Timestamp};

use crate::dto::{BudgetList, BudgetQuery, BudgetRequest, BudgetView, ConsumptionList, ConsumptionQuery};
use crate::errors::Problems;
use crate::state::ApiState;
use crate::translate;

/// What was used.
///
/// By the sandboxes of a project, of a key, or by one sandbox, ended ones too. A live sandbox is as of its last reading.
#[utoipa::path(
    get, path = "/v1/usage", tag = "usage", operation_id = "readUsage", params(ConsumptionQuery),
    responses(
        (status = 200, description = "Each sandbox, and all together.", content((ConsumptionList = "application/json"), (String = "text/csv"))),
        Problems
    )
)]
pub(crate) async fn usage(
    State(state): State<ApiState>,
    caller: Authenticated,
    QueryOf(query): QueryOf<ConsumptionQuery>,
) -> Result<Response, Problem> {
    let subject = query.subject.as_deref().map(translate::subject).transpose()?;
    let since = query.since.as_deref().map_or(Ok(Timestamp(0)), |text| translate::at("since", text))?;
    let csv = translate::word("format", query.format.as_deref().unwrap_or("json"), &[("json", false), ("csv", true)])?;
    let (readings, total) = state.service.consumption(&caller, subject, since).await?;
    let prices = &state.service.config().prices;
    if csv {
        return Ok(([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], translate::csv(&readings, prices)).into_response());
    }
    Ok(Json(translate::consumption_list(&readings, &total, prices)).into_response())
}

/// List budgets.
///
/// Administrators see all, others their project's.
#[utoipa::path(
    get, path = "/v1/budgets", tag = "usage", operation_id = "listBudgets",
    responses((status = 200, description = "By subject.", body = BudgetList), Problems)
)]
pub(crate) async fn list(State(state): State<ApiState>, caller: Authenticated) -> Result<Json<BudgetList>, Problem> {
    let budgets = state.service.budgets(&caller).await?;
    Ok(Json(BudgetList { budgets: budgets.iter().map(|(budget, used)| translate::budget_view(budget, *used)).collect() }))
}

/// Set a budget.
///
/// In place of the one of the same subject and meter. What is used already counts.
#[utoipa::path(
    put, path = "/v1/budgets", tag = "usage", operation_id = "setBudget", request_body = BudgetRequest,
    responses((status = 200, description = "It holds.", body = BudgetView), Problems)
)]
pub(crate) async fn set(
    State(state): State<ApiState>,
    caller: Authenticated,
    JsonBody(request): JsonBody<BudgetRequest>,
) -> Result<Json<BudgetView>, Problem> {
    caller.require(Scope::Admin)?;
    let at_limit = request.at_limit.as_deref().unwrap_or("pause");
    let budget = Budget {
        subject: translate::subject(&request.subject)?,
        meter: request.meter.parse()?,
        soft: request.soft,
        hard: request.hard,
        at_limit: translate::word("at_limit", at_limit, &[("pause", AtLimit::Pause), ("kill", AtLimit::Kill)])?,
        warned_at: None,
    };
    let (budget, used) = state.service.set_budget(&caller, budget).await?;
    Ok(Json(translate::budget_view(&budget, used)))
}

/// Remove a budget.
#[utoipa::path(
    delete, path = "/v1/budgets", tag = "usage", operation_id = "removeBudget", params(BudgetQuery),
    responses((status = 204, description = "There is none any more."), Problems)
)]
pub(crate) async fn remove(
    State(state): State<ApiState>,
    caller: Authenticated,
    QueryOf(query): QueryOf<BudgetQuery>,
) -> Result<StatusCode, Problem> {
    caller.require(Scope::Admin)?;
    let (subject, meter) = (translate::subject(&query.subject)?, query.meter.parse()?);
    if state.service.remove_budget(&caller, &subject, meter).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Problem::new(StatusCode::NOT_FOUND, "budget_not_found", format!("{subject} has no budget for {meter}")))
}
