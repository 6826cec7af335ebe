//! Who used how much of what, in memory: the sandboxes that live, whose they are, and the budgets they draw on. No clock, no waiting.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use belljar_types::{Budget, BudgetSubject, Consumption, Limits, Meter, SandboxId, Timestamp};
use tokio::sync::Notify;

/// However little is left, the next look is not sooner; where many share a budget, each of them costs so much more.
const SOONEST: Duration = Duration::from_millis(20);
const SOONEST_EACH: Duration = Duration::from_millis(2);
/// Of disk the kernel tells only how much there is.
const DISK_EVERY: Duration = Duration::from_secs(1);

/// How fast something can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rate {
    running: u64,
    cpu_millis: u64,
    memory_mib: u64,
}

impl Rate {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { running: 1, cpu_millis: limits.cpu_millis.into(), memory_mib: limits.memory_bytes >> 20 }
    }

    fn each(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            running: join(self.running, other.running),
            cpu_millis: join(self.cpu_millis, other.cpu_millis),
            memory_mib: join(self.memory_mib, other.memory_mib),
        }
    }

    fn is_within(self, other: Self) -> bool {
        self.running <= other.running && self.cpu_millis <= other.cpu_millis && self.memory_mib <= other.memory_mib
    }

    /// With room for as many again: looks are planned by this, so that not every newcomer has to wake all others.
    fn with_room(self) -> Self {
        self.each(self, |rate, _| rate.checked_next_power_of_two().unwrap_or(rate))
    }
}

/// Everybody who draws on one subject's budgets.
#[derive(Debug, Default)]
struct Group {
    budgets: Vec<Budget>,
    /// By the policy of the one sandbox that this is about.
    ruled: Vec<Budget>,
    /// What was used; kept only while there is a budget.
    used: Option<Consumption>,
    members: HashSet<SandboxId>,
    rate: Rate,
    planned: Rate,
}

impl Group {
    fn limits(&self) -> impl Iterator<Item = &Budget> {
        self.budgets.iter().chain(&self.ruled)
    }

    fn is_limited(&self) -> bool {
        self.limits().next().is_some()
    }

    /// What is left of something, where there is a hard limit.
    fn left(&self, meter: Meter) -> Option<u64> {
        let used = self.used?.of(meter);
        let limits = self.limits().filter(|budget| budget.meter == meter).filter_map(|budget| budget.hard);
        limits.map(|hard| hard.saturating_sub(used)).min()
    }
}

/// A live sandbox.
#[derive(Debug)]
struct Member {
    subjects: Vec<BudgetSubject>,
    total: Consumption,
    /// Of the total, what is in the store.
    written: Consumption,
    rate: Option<Rate>,
    stir: Arc<Notify>,
}

/// A budget that is used up, or from which on it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) budget: Budget,
    pub(crate) used: u64,
    pub(crate) hard: bool,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    groups: HashMap<BudgetSubject, Group>,
    members: HashMap<SandboxId, Member>,
    /// Faster than all processors together nobody can go.
    cores: u64,
}

impl Ledger {
    pub(crate) fn new(cores: u64) -> Self {
        Self { groups: HashMap::new(), members: HashMap::new(), cores }
    }

    /// A sandbox that lives from now on.
    pub(crate) fn join(&mut self, id: &SandboxId, subjects: Vec<BudgetSubject>, stir: Arc<Notify>) {
        for subject in &subjects {
            self.groups.entry(subject.clone()).or_default().members.insert(id.clone());
        }
        let member = Member { subjects, total: Consumption::default(), written: Consumption::default(), rate: None, stir };
        self.members.insert(id.clone(), member);
    }

    pub(crate) fn leave(&mut self, id: &SandboxId) {
        self.rest(id);
        let Some(member) = self.members.remove(id) else { return };
        for subject in member.subjects {
            if let Some(group) = self.groups.get_mut(&subject) {
                group.members.remove(id);
                if subject == BudgetSubject::Sandbox(id.clone()) {
                    group.ruled.clear();
                }
                if group.members.is_empty() && group.budgets.is_empty() {
                    self.groups.remove(&subject);
                }
            }
        }
    }

    /// What a sandbox had used when it joined: `written` is in the store already.
    pub(crate) fn go_on_from(&mut self, id: &SandboxId, written: Consumption, total: &Consumption) {
        if let Some(member) = self.members.get_mut(id) {
            (member.total, member.written) = (written, written);
            // What it used under a budget that is not in the store nobody else has counted.
            if let Some(own) = self.groups.get_mut(&BudgetSubject::Sandbox(id.clone())).filter(|group| group.budgets.is_empty()) {
                own.used = own.used.map(|_| written);
            }
            self.add(id, &total.since(&written));
        }
    }

    /// What a sandbox's policy lets it use, in place of what it said before.
    pub(crate) fn rule(&mut self, id: &SandboxId, budgets: Vec<Budget>) {
        let subject = BudgetSubject::Sandbox(id.clone());
        let (Some(member), Some(group)) = (self.members.get(id), self.groups.get_mut(&subject)) else { return };
        let total = member.total;
        group.ruled = budgets;
        group.used = if group.is_limited() { group.used.or(Some(total)) } else { None };
        self.stir(&subject);
    }

    /// It runs from now on: whoever shares a budget with it looks again, if that is used faster now than was planned for.
    pub(crate) fn run(&mut self, id: &SandboxId, rate: Rate) {
        self.rest(id);
        let Some(member) = self.members.get_mut(id) else { return };
        member.rate = Some(rate);
        for subject in member.subjects.clone() {
            let Some(group) = self.groups.get_mut(&subject) else { continue };
            group.rate = group.rate.each(rate, u64::saturating_add);
            if !group.rate.is_within(group.planned) {
                group.planned = group.rate.with_room();
                if group.is_limited() {
                    self.stir(&subject);
                }
            }
        }
    }

    /// It stands still.
    pub(crate) fn rest(&mut self, id: &SandboxId) {
        let Some(member) = self.members.get_mut(id) else { return };
        let Some(rate) = member.rate.take() else { return };
        for subject in &member.subjects {
            if let Some(group) = self.groups.get_mut(subject) {
                group.rate = group.rate.each(rate, u64::saturating_sub);
                if group.rate.running.saturating_mul(4) <= group.planned.running {
                    group.planned = group.rate.with_room();
                }
            }
        }
    }

    /// Adds what a sandbox used, wakes all whose limit that reaches, and gives its new total.
    pub(crate) fn add(&mut self, id: &SandboxId, more: &Consumption) -> Option<Consumption> {
        let member = self.members.get_mut(id)?;
        member.total = member.total.plus(more);
        let (total, own) = (member.total, Arc::clone(&member.stir));
        let mut full = Vec::new();
        for subject in &member.subjects {
            let Some(group) = self.groups.get_mut(subject) else { continue };
            let Some(before) = group.used else { continue };
            let after = before.plus(more);
            group.used = Some(after);
            for budget in group.limits() {
                let crosses = |limit: Option<u64>| limit.is_some_and(|at| before.of(budget.meter) < at && at <= after.of(budget.meter));
                if crosses(budget.hard) {
                    full.push(subject.clone());
                } else if crosses(budget.soft) {
                    own.notify_one();
                }
            }
        }
        full.iter().for_each(|subject| self.stir(subject));
        Some(total)
    }

    /// Adds bytes that are about to go, as many of them as no hard limit forbids. Says how many those are, and the sandbox's new total.
    pub(crate) fn pay(&mut self, id: &SandboxId, meter: Meter, bytes: u64) -> Option<(u64, Consumption)> {
        let groups = self.members.get(id)?.subjects.iter().filter_map(|subject| self.groups.get(subject));
        let paid = groups.filter_map(|group| group.left(meter)).fold(bytes, u64::min);
        let more = match meter {
            Meter::IngressBytes => Consumption { ingress_bytes: paid, ..Consumption::default() },
            _ => Consumption { egress_bytes: paid, ..Consumption::default() },
        };
        Some((paid, self.add(id, &more)?))
    }

    /// A budget of bytes that one of these has.
    pub(crate) fn bounds_bytes(&self, subjects: &[BudgetSubject]) -> Option<(BudgetSubject, Meter)> {
        let budgets = subjects.iter().filter_map(|subject| self.groups.get(subject)).flat_map(Group::limits);
        let mut of_bytes = budgets.filter(|budget| budget.meter.is_of_bytes());
        of_bytes.next().map(|budget| (budget.subject.clone(), budget.meter))
    }

    pub(crate) fn total(&self, id: &SandboxId) -> Consumption {
        self.members.get(id).map(|member| member.total).unwrap_or_default()
    }

    /// So much of a sandbox's total is in the store now.
    pub(crate) fn written(&mut self, id: &SandboxId, total: Consumption) {
        if let Some(member) = self.members.get_mut(id) {
            member.written = total;
        }
    }

    /// Whether what a subject used is known here.
    pub(crate) fn is_watched(&self, subject: &BudgetSubject) -> bool {
        self.groups.get(subject).is_some_and(|group| group.used.is_some())
    }

    /// Replaces all budgets and wakes everybody they concern. `sums` are those of the store for subjects that were not watched.
    pub(crate) fn set_budgets(&mut self, budgets: Vec<Budget>, sums: &HashMap<BudgetSubject, Consumption>) {
        let mut before: HashMap<BudgetSubject, Vec<Budget>> = HashMap::new();
        for (subject, group) in &mut self.groups {
            before.insert(subject.clone(), std::mem::take(&mut group.budgets));
        }
        for budget in budgets {
            self.groups.entry(budget.subject.clone()).or_default().budgets.push(budget);
        }
        self.groups.retain(|_, group| !(group.members.is_empty() && group.budgets.is_empty()));
        let mut changed = Vec::new();
        for (subject, group) in &mut self.groups {
            if !group.is_limited() {
                group.used = None;
            } else if group.used.is_none() {
                let unwritten =
                    group.members.iter().filter_map(|id| self.members.get(id)).map(|member| member.total.since(&member.written));
                let sum = sums.get(subject).copied().unwrap_or_default();
                group.used = Some(unwritten.fold(sum, |sum, more| sum.plus(&more)));
            }
            if before.get(subject) != Some(&group.budgets) {
                changed.push(subject.clone());
            }
        }
        changed.iter().for_each(|subject| self.stir(subject));
    }

    /// Whoever is over its soft limit was told.
    pub(crate) fn warned(&mut self, budget: &Budget, at: Timestamp) {
        let group = self.groups.get_mut(&budget.subject);
        for known in group.into_iter().flat_map(|group| &mut group.budgets).filter(|known| known.meter == budget.meter) {
            known.warned_at = Some(at);
        }
    }

    /// The budgets of these that are reached, hard ones first.
    pub(crate) fn reached(&self, subjects: &[BudgetSubject]) -> Vec<Reached> {
        let mut reached = Vec::new();
        for group in subjects.iter().filter_map(|subject| self.groups.get(subject)) {
            for budget in group.limits() {
                let used = group.used.unwrap_or_default().of(budget.meter);
                let hard = budget.hard.is_some_and(|hard| used >= hard);
                if hard || budget.soft.is_some_and(|soft| used >= soft) {
                    reached.push(Reached { budget: budget.clone(), used, hard });
                }
            }
        }
        reached.sort_by_key(|reached| !reached.hard);
        reached
    }

    /// How long it takes at the least until a budget of these is reached.
    pub(crate) fn next_look(&self, subjects: &[BudgetSubject]) -> Option<Duration> {
        let groups = subjects.iter().filter_map(|subject| self.groups.get(subject));
        groups.filter_map(|group| self.next_look_of(group)).min()
    }

    fn next_look_of(&self, group: &Group) -> Option<Duration> {
        let used = group.used?;
        let limits = group.limits().flat_map(|budget| {
            let soft = budget.soft.filter(|_| budget.warned_at.is_none());
            [soft, budget.hard].into_iter().flatten().map(|limit| (budget.meter, limit))
        });
        let left = limits.filter(|(meter, limit)| *limit > used.of(*meter)).map(|(meter, limit)| (meter, limit - used.of(meter)));
        let wait = left.filter_map(|(meter, left)| at_the_fastest(meter, left, group.planned, self.cores)).min()?;
        let members = u32::try_from(group.members.len()).unwrap_or(u32::MAX);
        Some(wait.max(SOONEST).max(SOONEST_EACH.saturating_mul(members)))
    }

    pub(crate) fn used(&self, subject: &BudgetSubject) -> Consumption {
        self.groups.get(subject).and_then(|group| group.used).unwrap_or_default()
    }

    pub(crate) fn members(&self, subject: &BudgetSubject) -> Vec<SandboxId> {
        self.groups.get(subject).map(|group| group.members.iter().cloned().collect()).unwrap_or_default()
    }

    fn stir(&self, subject: &BudgetSubject) {
        let members = self.groups.get(subject).into_iter().flat_map(|group| &group.members);
        members.filter_map(|id| self.members.get(id)).for_each(|member| member.stir.notify_one());
    }
}

/// How long so much lasts; `None` for what is counted as it happens.
fn at_the_fastest(meter: Meter, left: u64, rate: Rate, cores: u64) -> Option<Duration> {
    let cpu_millis = rate.cpu_millis.min(cores.saturating_mul(1000)).max(1);
    match meter {
        Meter::CpuMicros => Some(Duration::from_micros(left.saturating_mul(1000) / cpu_millis)),
        Meter::WallMillis => Some(Duration::from_millis(left / rate.running.max(1))),
        Meter::MemoryMibSeconds => Some(Duration::from_millis(left.saturating_mul(1000) / rate.memory_mib.max(1))),
        Meter::DiskBytes => Some(DISK_EVERY),
        Meter::EgressBytes | Meter::IngressBytes | Meter::Executions => None,
    }
}

#[cfg(test)]
mod tests;
