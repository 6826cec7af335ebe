//! Usage and budgets: verbs for whoever pays.

use std::sync::Arc;
use std::time::Duration;

use belljar_types::{
    AuditAction, Budget, BudgetSubject, Consumption, Invalid, Meter, MeterReading, Network, Phase, SandboxId, Scope, Timestamp,
};
use tokio::sync::oneshot;

use crate::metering::refuse;
use crate::owner::Order;
use crate::{Caller, CoreError, Service};

/// How long is waited for owners that are busy with something else; their last reading stands then.
const PATIENCE: Duration = Duration::from_secs(2);

impl Service {
    /// What the sandboxes of somebody used that were read since then, each and all together. Live ones are read now.
    pub async fn consumption(
        &self,
        caller: &Caller,
        subject: Option<BudgetSubject>,
        since: Timestamp,
    ) -> Result<(Vec<MeterReading>, Consumption), CoreError> {
        caller.require(Scope::Read)?;
        let subject = subject.unwrap_or_else(|| BudgetSubject::Project(caller.project.clone()));
        // What belongs to another is not there.
        if let BudgetSubject::Project(id) = &subject
            && *id != caller.project
            && !caller.may(Scope::Admin)
        {
            return Err(CoreError::NoProject { id: id.clone() });
        }
        self.read_meters(&subject).await;
        let mut readings = self.shared.store.meter_readings(&subject, since).await?;
        if !caller.may(Scope::Admin) {
            readings.retain(|reading| reading.project == caller.project);
        }
        let total = readings.iter().fold(Consumption::default(), |sum, reading| sum.plus(&reading.total));
        Ok((readings, total))
    }

    /// All budgets for an administrator, those of its project for anybody else; and what was used of each.
    pub async fn budgets(&self, caller: &Caller) -> Result<Vec<(Budget, u64)>, CoreError> {
        caller.require(Scope::Read)?;
        let mut budgets = self.shared.store.budgets().await?;
        let own = BudgetSubject::Project(caller.project.clone());
        budgets.retain(|budget| caller.may(Scope::Admin) || budget.subject == own);
        let with_used = |budget: Budget| {
            let used = self.shared.meters.used(&budget.subject).of(budget.meter);
            (budget, used)
        };
        Ok(budgets.into_iter().map(with_used).collect())
    }

    /// Sets a budget. Sandboxes that are over it are stopped at once.
    pub async fn set_budget(&self, caller: &Caller, budget: Budget) -> Result<(Budget, u64), CoreError> {
        caller.require(Scope::Admin)?;
        check(&budget)?;
        self.check_subject(caller, &budget.subject).await?;
        self.check_counted(&budget)?;
        let subject = format!("{} {}", budget.subject, budget.meter);
        let (shared, set) = (Arc::clone(&self.shared), budget.clone());
        let setting = async move {
            shared.store.set_budget(&set).await?;
            Ok(shared.meters.reload(&*shared.store).await?)
        };
        self.recorded(caller, None, action("set_budget", &subject), setting).await?;
        let used = self.shared.meters.used(&budget.subject).of(budget.meter);
        Ok((budget, used))
    }

    /// Removes a budget. Says whether there was one.
    pub async fn remove_budget(&self, caller: &Caller, subject: &BudgetSubject, meter: Meter) -> Result<bool, CoreError> {
        caller.require(Scope::Admin)?;
        let named = format!("{subject} {meter}");
        let (shared, subject) = (Arc::clone(&self.shared), subject.clone());
        let removing = async move {
            let removed = shared.store.remove_budget(&subject, meter).await?;
            shared.meters.reload(&*shared.store).await?;
            Ok(removed)
        };
        self.recorded(caller, None, action("remove_budget", &named), removing).await
    }

    /// Refuses new work for a project or a key that has used up what it may, and work of which what it uses could not be counted.
    pub(crate) fn refuse_without_budget(&self, caller: &Caller, network: Network) -> Result<(), CoreError> {
        let subjects = [BudgetSubject::Project(caller.project.clone()), BudgetSubject::Key(caller.key.clone())];
        if network == Network::Open
            && let Some((subject, meter)) = self.shared.meters.bounds_bytes(&subjects)
        {
            let expected = format!(
                "none, or a policy such as the profile open instead: {subject} has a budget of {meter}, and bytes of an open network are not counted"
            );
            return Err(Invalid::new("network", expected, "open").into());
        }
        refuse(&self.shared.meters.reached(&subjects))
    }

    /// Bytes of an open network are not counted, and what is not counted cannot be stopped at: no budget is better than one that is never reached.
    fn check_counted(&self, budget: &Budget) -> Result<(), Invalid> {
        if !budget.meter.is_of_bytes() {
            return Ok(());
        }
        let is_open = |id: &SandboxId| self.shared.handle(id).is_some_and(|handle| handle.view.borrow().spec.network == Network::Open);
        match self.shared.meters.members(&budget.subject).into_iter().find(is_open) {
            Some(id) => {
                let expected =
                    format!("a meter that is counted; sandbox {id} has an open network, whose bytes are not: end it, or give it a policy");
                Err(Invalid::new("meter", expected, budget.meter.as_str()))
            }
            None => Ok(()),
        }
    }

    /// Has the live sandboxes of somebody read, all at the same time.
    async fn read_meters(&self, subject: &BudgetSubject) {
        let reading = self.shared.meters.members(subject).into_iter().map(|id| self.read_meter(id));
        let _late = tokio::time::timeout(PATIENCE, futures_util::future::join_all(reading)).await;
    }

    async fn read_meter(&self, id: SandboxId) {
        let Some(handle) = self.shared.handle(&id) else { return };
        let (reply, answer) = oneshot::channel();
        if handle.orders.send(Order::ReadMeter(reply)).await.is_ok() {
            let _ended = answer.await;
        }
    }

    async fn check_subject(&self, caller: &Caller, subject: &BudgetSubject) -> Result<(), CoreError> {
        match subject {
            BudgetSubject::Project(id) => self.project(caller, id).await.map(drop),
            BudgetSubject::Key(id) if self.shared.store.keys(None).await?.iter().all(|key| key.id != *id) => {
                Err(CoreError::NoKey { id: id.clone() })
            }
            BudgetSubject::Sandbox(id) if self.shared.handle(id).is_none() && self.shared.store.meter_reading(id).await?.is_none() => {
                Err(CoreError::NoSandbox { id: id.clone() })
            }
            BudgetSubject::Key(_) | BudgetSubject::Sandbox(_) => Ok(()),
        }
    }
}

fn check(budget: &Budget) -> Result<(), Invalid> {
    match (budget.soft, budget.hard) {
        (None, None) => Err(Invalid::new("hard", "a soft limit, a hard limit or both", "neither")),
        (Some(soft), Some(hard)) if soft > hard => Err(Invalid::new("soft", format!("at most the hard limit, {hard}"), soft.to_string())),
        _ => Ok(()),
    }
}

fn action(verb: &'static str, subject: &str) -> impl Fn(Phase) -> AuditAction + use<> {
    let subject = subject.to_owned();
    move |phase| AuditAction::Access { verb: verb.to_owned(), phase, subject: subject.clone(), detail: std::collections::BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use belljar_types::AtLimit;

    use super::*;

    #[test]
    fn a_budget_that_could_not_be_kept_is_refused() {
        let budget = |meter, soft, hard| Budget {
            subject: BudgetSubject::Project("default".parse().unwrap()),
            meter,
            soft,
            hard,
            at_limit: AtLimit::Kill,
            warned_at: None,
        };
        assert!(check(&budget(Meter::Executions, Some(1), Some(2))).is_ok());
        assert_eq!(check(&budget(Meter::Executions, Some(3), Some(2))).unwrap_err().field, "soft");
        assert_eq!(check(&budget(Meter::Executions, None, None)).unwrap_err().field, "hard");
    }
}
