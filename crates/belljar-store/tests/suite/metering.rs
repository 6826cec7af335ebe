//! What was counted is kept as it was written, adds up, and outlives its sandbox; budgets come and go.

use belljar_ports::StoreError;
use belljar_types::{AtLimit, Budget, BudgetSubject, Consumption, Epoch, KeyId, MessageKind, Meter, MeterReading, SandboxId, Timestamp};

use crate::bed::Bed;

fn reading(bed: &Bed, key: &KeyId, cpu_micros: u64) -> MeterReading {
    MeterReading {
        sandbox: SandboxId::random(),
        project: bed.project.clone(),
        key: Some(key.clone()),
        total: Consumption {
            cpu_micros,
            wall_millis: 2,
            memory_mib_seconds: 3,
            disk_bytes: 4,
            egress_bytes: 5,
            ingress_bytes: 6,
            executions: 7,
        },
        read_at: Timestamp(cpu_micros),
    }
}

pub(crate) async fn readings_are_kept_and_add_up(bed: &Bed) {
    let epoch = bed.store.begin_epoch().await.unwrap();
    let (one, other) = (KeyId::random(), KeyId::random());
    let mut first = reading(bed, &one, 10);
    let second = reading(bed, &other, 20);
    bed.store.write_meter_reading(epoch, &first).await.unwrap();
    bed.store.write_meter_reading(epoch, &second).await.unwrap();
    first.total.cpu_micros = 15;
    first.read_at = Timestamp(15);
    bed.store.write_meter_reading(epoch, &first).await.unwrap();
    bed.store.write_meter_reading(epoch, &first).await.unwrap();
    assert_eq!(bed.store.meter_reading(&first.sandbox).await.unwrap(), Some(first.clone()));
    assert_eq!(bed.store.meter_reading(&SandboxId::random()).await.unwrap(), None);

    let project = BudgetSubject::Project(bed.project.clone());
    let whole = bed.store.consumed(&project).await.unwrap();
    assert_eq!(whole, first.total.plus(&second.total), "written twice, it counts once");
    let by_key = [one, other].map(BudgetSubject::Key);
    let mut sum = Consumption::default();
    for key in &by_key {
        sum = sum.plus(&bed.store.consumed(key).await.unwrap());
    }
    assert_eq!(sum, whole);
    assert_eq!(bed.store.meter_readings(&project, Timestamp(0)).await.unwrap(), [first.clone(), second.clone()]);
    assert_eq!(bed.store.meter_readings(&project, Timestamp(16)).await.unwrap(), [second]);
    assert_eq!(bed.store.consumed(&BudgetSubject::Sandbox(SandboxId::random())).await.unwrap(), Consumption::default());

    bed.store.begin_epoch().await.unwrap();
    let late = bed.store.write_meter_reading(Epoch(epoch.0), &first).await;
    assert!(matches!(late, Err(StoreError::Fenced { .. })), "{late:?}");
}

pub(crate) async fn budgets_come_and_go(bed: &Bed) {
    let subject = BudgetSubject::Project(bed.project.clone());
    let mut budget = Budget {
        subject: subject.clone(),
        meter: Meter::CpuMicros,
        soft: None,
        hard: Some(u64::MAX),
        at_limit: AtLimit::Kill,
        warned_at: None,
    };
    bed.store.set_budget(&budget).await.unwrap();
    assert_eq!(bed.store.budgets().await.unwrap(), [budget.clone()]);
    budget.soft = Some(5);
    budget.at_limit = AtLimit::Pause;
    bed.store.set_budget(&budget).await.unwrap();
    assert_eq!(bed.store.budgets().await.unwrap(), [budget.clone()]);

    let message = crate::webhooks::message(bed, MessageKind::BudgetWarning, &SandboxId::random(), 1);
    let warned = |at| bed.store.warn_of_budget(bed.epoch, &budget, Timestamp(at), &message);
    assert!(warned(7).await.unwrap());
    assert!(!warned(8).await.unwrap(), "it is told once");
    assert_eq!(bed.store.budgets().await.unwrap(), [Budget { warned_at: Some(Timestamp(7)), ..budget.clone() }]);
    bed.store.set_budget(&Budget { soft: Some(6), ..budget.clone() }).await.unwrap();
    assert!(!warned(9).await.unwrap(), "of a limit that is no longer the limit nobody is told");
    bed.store.set_budget(&budget).await.unwrap();
    assert!(warned(10).await.unwrap(), "a budget that is set again is told of again");

    assert!(bed.store.remove_budget(&subject, Meter::CpuMicros).await.unwrap());
    assert!(!bed.store.remove_budget(&subject, Meter::CpuMicros).await.unwrap());
    assert!(bed.store.budgets().await.unwrap().is_empty());
}
