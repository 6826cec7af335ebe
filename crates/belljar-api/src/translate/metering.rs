//! Usage and budgets, between what travels and the core's words.

use belljar_types::{Budget, BudgetSubject, Consumption, Invalid, Meter, MeterReading, Money, Prices, Timestamp};

use super::{moment, renamed};
use crate::dto::{BudgetView, ConsumptionList, ConsumptionView, MeterReadingView};

pub(crate) fn subject(text: &str) -> Result<BudgetSubject, Invalid> {
    text.parse().map_err(|error| renamed("subject", error))
}

/// A moment from RFC 3339.
pub(crate) fn at(field: &str, text: &str) -> Result<Timestamp, Invalid> {
    let moment: jiff::Timestamp = text.parse().map_err(|_| Invalid::new(field, "a moment as in 2026-11-15T06:00:00Z", text))?;
    Ok(Timestamp(u64::try_from(moment.as_millisecond()).unwrap_or(0)))
}

fn consumption_view(used: &Consumption) -> ConsumptionView {
    ConsumptionView {
        cpu_micros: used.cpu_micros,
        wall_millis: used.wall_millis,
        memory_mib_seconds: used.memory_mib_seconds,
        disk_bytes: used.disk_bytes,
        egress_bytes: used.egress_bytes,
        ingress_bytes: used.ingress_bytes,
        executions: used.executions,
    }
}

pub(crate) fn consumption_list(readings: &[MeterReading], total: &Consumption, prices: &Prices) -> ConsumptionList {
    let whole = readings.iter().fold(Money::ZERO, |sum, reading| sum.plus(prices.cost(&reading.total)));
    ConsumptionList {
        sandboxes: readings.iter().map(|reading| reading_view(reading, prices)).collect(),
        total: consumption_view(total),
        cost: prices.currency.is_some().then(|| whole.to_string()),
        currency: prices.currency.clone(),
    }
}

fn reading_view(reading: &MeterReading, prices: &Prices) -> MeterReadingView {
    MeterReadingView {
        sandbox: reading.sandbox.to_string(),
        project: reading.project.to_string(),
        key: reading.key.as_ref().map(ToString::to_string),
        read_at: moment(reading.read_at),
        used: consumption_view(&reading.total),
        cost: prices.currency.is_some().then(|| prices.cost(&reading.total).to_string()),
    }
}

/// A line a sandbox, under a line of names. Nothing in it needs quoting: ids, numbers and moments. The cost is empty where there are no prices.
pub(crate) fn csv(readings: &[MeterReading], prices: &Prices) -> String {
    let meters = Meter::ALL.map(Meter::as_str).join(",");
    let mut text = format!("sandbox,project,key,read_at,{meters},cost\n");
    for reading in readings {
        let key = reading.key.as_ref().map(ToString::to_string).unwrap_or_default();
        let cost = prices.currency.as_ref().map(|_| prices.cost(&reading.total).to_string()).unwrap_or_default();
        let numbers = Meter::ALL.map(|meter| reading.total.of(meter).to_string()).join(",");
        text.push_str(&format!("{},{},{},{},{numbers},{cost}\n", reading.sandbox, reading.project, key, moment(reading.read_at)));
    }
    text
}

pub(crate) fn budget_view(budget: &Budget, used: u64) -> BudgetView {
    BudgetView {
        subject: budget.subject.to_string(),
        meter: budget.meter.as_str(),
        soft: budget.soft,
        hard: budget.hard,
        at_limit: budget.at_limit.as_str(),
        warned_at: budget.warned_at.map(moment),
        used,
    }
}
