//! The ledger against what really happened: whatever the order of work, readings, budgets and deaths of the server, nothing is lost, nothing
//! is counted twice, and the parts make the whole.

use std::future::Future as _;
use std::task::{Context, Waker};

use belljar_types::{AtLimit, KeyId, Tally, Usage};
use proptest::prelude::*;

use super::super::reading::since;
use super::*;

const MEMORY: u64 = 512 << 20;

fn budget(subject: &BudgetSubject, meter: Meter, soft: Option<u64>, hard: Option<u64>) -> Budget {
    Budget { subject: subject.clone(), meter, soft, hard, at_limit: AtLimit::Kill, warned_at: None }
}

/// By the policy of a sandbox; every second one has one.
fn ruled(number: usize, id: &SandboxId) -> Vec<Budget> {
    let subject = BudgetSubject::Sandbox(id.clone());
    if number.is_multiple_of(2) { vec![budget(&subject, Meter::Executions, None, Some(u64::MAX))] } else { Vec::new() }
}

fn project() -> BudgetSubject {
    BudgetSubject::Project("team-a".parse().unwrap())
}

/// A sandbox as it really is, and what of it is outside the server.
struct Real {
    id: SandboxId,
    subjects: Vec<BudgetSubject>,
    used: Consumption,
    /// The time up to which the server counted, and what of that it wrote down.
    counted_to: u64,
    written_to: u64,
    stored: Consumption,
    tally: Tally,
    ended: bool,
}

struct World {
    ledger: Ledger,
    budgets: Vec<Budget>,
    real: Vec<Real>,
}

#[derive(Debug, Clone)]
enum Step {
    Work { who: usize, cpu: u64, disk: u64, wall: u64 },
    Start { who: usize },
    Read { who: usize, write: bool },
    Budgets { project: bool, keys: bool },
    Die,
    End { who: usize },
}

impl World {
    fn new(keys: &[KeyId; 2]) -> Self {
        let mut world = Self { ledger: Ledger::new(2), budgets: Vec::new(), real: Vec::new() };
        for number in 0..4 {
            let id = SandboxId::random();
            let subjects = vec![project(), BudgetSubject::Sandbox(id.clone()), BudgetSubject::Key(keys[number % 2].clone())];
            world.ledger.join(&id, subjects.clone(), Arc::default());
            world.ledger.rule(&id, ruled(number, &id));
            let (used, stored, tally) = Default::default();
            world.real.push(Real { id, subjects, used, counted_to: 0, written_to: 0, stored, tally, ended: false });
        }
        world
    }

    fn sum(&self, subject: &BudgetSubject, of: impl Fn(&Real) -> Consumption) -> Consumption {
        let theirs = self.real.iter().filter(|real| real.subjects.contains(subject));
        theirs.fold(Consumption::default(), |sum, real| sum.plus(&of(real)))
    }

    fn load_budgets(&mut self) {
        let unwatched = self.budgets.iter().filter(|budget| !self.ledger.is_watched(&budget.subject));
        let sums = unwatched.map(|budget| (budget.subject.clone(), self.sum(&budget.subject, |real| real.stored))).collect();
        self.ledger.set_budgets(self.budgets.clone(), &sums);
    }

    fn step(&mut self, step: &Step, keys: &[KeyId; 2]) {
        match *step {
            Step::Work { who, cpu, disk, wall } if !self.real[who].ended => {
                let used = &mut self.real[who].used;
                used.cpu_micros += cpu;
                used.disk_bytes = used.disk_bytes.max(disk);
                used.wall_millis += wall;
                used.memory_mib_seconds = (MEMORY >> 20) * used.wall_millis / 1000;
            }
            Step::Start { who } if !self.real[who].ended => {
                let real = &mut self.real[who];
                real.used.executions += 1;
                real.tally = self.ledger.add(&real.id, &Consumption { executions: 1, ..Consumption::default() }).unwrap().tally();
            }
            Step::Read { who, write } if !self.real[who].ended => self.read(who, write),
            Step::Budgets { project: of_project, keys: of_keys } => {
                self.budgets = Vec::new();
                if of_project {
                    self.budgets.push(budget(&project(), Meter::CpuMicros, Some(10), Some(u64::MAX)));
                }
                if of_keys {
                    self.budgets.extend(keys.iter().map(|key| budget(&BudgetSubject::Key(key.clone()), Meter::Executions, None, Some(5))));
                }
                self.load_budgets();
            }
            Step::Die => {
                self.ledger = Ledger::new(2);
                self.load_budgets();
                for (number, real) in self.real.iter_mut().enumerate().filter(|(_, real)| !real.ended) {
                    self.ledger.join(&real.id, real.subjects.clone(), Arc::default());
                    self.ledger.rule(&real.id, ruled(number, &real.id));
                    let mut total = real.stored;
                    total.executions = total.executions.max(real.tally.executions);
                    self.ledger.go_on_from(&real.id, real.stored, &total);
                    real.counted_to = real.written_to;
                }
            }
            Step::End { who } if !self.real[who].ended => {
                self.read(who, true);
                self.real[who].ended = true;
                self.ledger.leave(&self.real[who].id);
            }
            _ => {}
        }
    }

    fn read(&mut self, who: usize, write: bool) {
        let real = &mut self.real[who];
        let usage = Usage { cpu_micros: real.used.cpu_micros, disk_bytes: real.used.disk_bytes, ..Usage::default() };
        let more = since(&self.ledger.total(&real.id), Some(&usage), real.used.wall_millis - real.counted_to, MEMORY);
        let total = self.ledger.add(&real.id, &more).unwrap();
        real.counted_to = real.used.wall_millis;
        if write {
            (real.stored, real.written_to) = (total, real.counted_to);
            self.ledger.written(&real.id, total);
        }
    }

    /// What is watched is what is in the store of those that ended and in the ledger of those that live.
    fn check(&self) {
        for budget in &self.budgets {
            let known = self.sum(&budget.subject, |real| if real.ended { real.stored } else { self.ledger.total(&real.id) });
            assert_eq!(self.ledger.used(&budget.subject), known, "{}", budget.subject);
        }
        for (_, real) in self.real.iter().enumerate().filter(|(number, real)| !real.ended && number.is_multiple_of(2)) {
            let own = BudgetSubject::Sandbox(real.id.clone());
            assert_eq!(self.ledger.used(&own), self.ledger.total(&real.id), "what a policy bounds is counted, whatever else is");
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..4usize;
    prop_oneof![
        4 => (who.clone(), 0..1000u64, 0..1000u64, 0..5000u64).prop_map(|(who, cpu, disk, wall)| Step::Work { who, cpu, disk, wall }),
        4 => who.clone().prop_map(|who| Step::Start { who }),
        4 => (who.clone(), any::<bool>()).prop_map(|(who, write)| Step::Read { who, write }),
        1 => any::<(bool, bool)>().prop_map(|(project, keys)| Step::Budgets { project, keys }),
        2 => Just(Step::Die),
        1 => who.prop_map(|who| Step::End { who }),
    ]
}

proptest! {
    #[test]
    fn the_parts_make_the_whole_whenever_the_server_dies(steps in proptest::collection::vec(step(), 1..80)) {
        let keys = [KeyId::random(), KeyId::random()];
        let mut world = World::new(&keys);
        for step in &steps {
            world.step(step, &keys);
            world.check();
        }
        world.step(&Step::Budgets { project: true, keys: true }, &keys);
        for who in 0..world.real.len() {
            world.step(&Step::End { who }, &keys);
        }
        world.check();
        for real in &world.real {
            prop_assert_eq!(real.stored, real.used, "every sandbox's account is what it really used");
        }
        let whole = world.ledger.used(&project());
        let by_key = keys.map(|key| world.ledger.used(&BudgetSubject::Key(key)));
        prop_assert_eq!(by_key[0].plus(&by_key[1]), whole);
        prop_assert_eq!(world.sum(&project(), |real| real.used), whole);
    }
}

#[test]
fn the_next_look_is_when_all_could_be_used_up_at_the_earliest() {
    let two = Rate { running: 2, cpu_millis: 2000, memory_mib: 1024 };
    let check = |meter, left, expected: Option<u64>| {
        assert_eq!(at_the_fastest(meter, left, two, 2), expected.map(Duration::from_millis), "{meter}");
    };
    check(Meter::CpuMicros, 2_000_000, Some(1000));
    check(Meter::WallMillis, 1000, Some(500));
    check(Meter::MemoryMibSeconds, 1024, Some(1000));
    check(Meter::DiskBytes, 1, Some(1000));
    check(Meter::Executions, 5, None);
    let many = Rate { cpu_millis: 64_000, ..two };
    assert_eq!(at_the_fastest(Meter::CpuMicros, 2_000_000, many, 2), Some(Duration::from_secs(1)), "two processors are two processors");
}

/// Whether somebody was woken since this was last asked.
fn is_stirred(stir: &Notify) -> bool {
    let notified = std::pin::pin!(stir.notified());
    notified.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn whoever_shares_a_budget_is_woken_when_it_ends_and_nobody_else() {
    let mut ledger = Ledger::new(2);
    let stirs: Vec<Arc<Notify>> = (0..3).map(|_| Arc::default()).collect();
    let ids: Vec<SandboxId> = (0..3).map(|_| SandboxId::random()).collect();
    let stranger = BudgetSubject::Project("stranger".parse().unwrap());
    for (number, (id, stir)) in ids.iter().zip(&stirs).enumerate() {
        ledger.join(id, vec![if number == 2 { stranger.clone() } else { project() }], Arc::clone(stir));
    }
    ledger.set_budgets(vec![budget(&project(), Meter::Executions, Some(1), Some(2))], &HashMap::new());
    let woken = || stirs.iter().map(|stir| is_stirred(stir)).collect::<Vec<_>>();
    assert_eq!(woken(), [true, true, false], "a new budget concerns its own");
    let one = Consumption { executions: 1, ..Consumption::default() };
    ledger.add(&ids[0], &one);
    assert_eq!(woken(), [true, false, false], "at the soft limit one tells");
    ledger.add(&ids[0], &one);
    assert_eq!(woken(), [true, true, false], "at the hard limit all stop");
    ledger.add(&ids[0], &one);
    assert_eq!(woken(), [false, false, false], "once");
    assert!(ledger.reached(&[project()])[0].hard);
    assert!(ledger.reached(&[stranger]).is_empty());
}

#[test]
fn what_a_policy_allows_is_held_beside_what_is_in_the_store_and_ends_with_the_sandbox() {
    let (mut ledger, id, stir) = (Ledger::new(2), SandboxId::random(), Arc::<Notify>::default());
    let own = BudgetSubject::Sandbox(id.clone());
    ledger.join(&id, vec![own.clone()], Arc::clone(&stir));
    let started = |count| Consumption { executions: count, ..Consumption::default() };
    ledger.add(&id, &started(2));
    ledger.rule(&id, vec![budget(&own, Meter::Executions, None, Some(3))]);
    assert!(is_stirred(&stir) && ledger.reached(std::slice::from_ref(&own)).is_empty(), "what was used before counts, and is less");
    ledger.add(&id, &started(1));
    assert!(is_stirred(&stir) && ledger.reached(std::slice::from_ref(&own))[0].hard);
    ledger.set_budgets(vec![budget(&own, Meter::Executions, None, Some(9))], &HashMap::new());
    assert_eq!(ledger.reached(std::slice::from_ref(&own)).len(), 1, "a larger one in the store changes nothing");
    ledger.rule(&id, Vec::new());
    assert!(ledger.reached(std::slice::from_ref(&own)).is_empty(), "a policy without one does");
    ledger.rule(&id, vec![budget(&own, Meter::Executions, None, Some(3))]);
    ledger.set_budgets(Vec::new(), &HashMap::new());
    assert_eq!(ledger.reached(std::slice::from_ref(&own)).len(), 1, "and none in the store changes nothing either");
    ledger.leave(&id);
    assert!(ledger.groups.is_empty(), "nothing of it is left");
}

#[test]
fn newcomers_wake_the_others_only_now_and_then() {
    let mut ledger = Ledger::new(2);
    ledger.set_budgets(vec![budget(&project(), Meter::WallMillis, None, Some(1_000_000))], &HashMap::new());
    let first: Arc<Notify> = Arc::default();
    let mut woken = 0;
    for number in 0..1000 {
        let id = SandboxId::random();
        let stir = if number == 0 { Arc::clone(&first) } else { Arc::default() };
        ledger.join(&id, vec![project()], stir);
        ledger.run(&id, Rate { running: 1, cpu_millis: 100, memory_mib: 64 });
        woken += u32::from(is_stirred(&first));
    }
    assert!(woken <= 40, "{woken} times for 1000 newcomers");
    let wait = ledger.next_look(&[project()]).unwrap();
    assert!(wait >= Duration::from_secs(2), "a thousand are not asked fifty times a second: {wait:?}");
}

#[test]
fn bytes_go_as_far_as_the_nearest_budget_and_no_farther() {
    let (one, other) = (SandboxId::random(), SandboxId::random());
    let own = BudgetSubject::Sandbox(one.clone());
    let mut ledger = Ledger::new(2);
    let stir = Arc::new(Notify::new());
    ledger.join(&one, vec![project(), own.clone()], Arc::clone(&stir));
    ledger.join(&other, vec![project()], Arc::default());
    let paid = |ledger: &mut Ledger, id: &SandboxId, meter, bytes| ledger.pay(id, meter, bytes).map(|(paid, _)| paid);
    assert_eq!(paid(&mut ledger, &one, Meter::EgressBytes, 1000), Some(1000), "without a budget all of them");
    let budgets = vec![budget(&project(), Meter::EgressBytes, None, Some(5000)), budget(&own, Meter::EgressBytes, None, Some(3000))];
    let sums = HashMap::from([(project(), Consumption::default()), (own.clone(), Consumption::default())]);
    ledger.set_budgets(budgets, &sums);
    assert_eq!(paid(&mut ledger, &one, Meter::IngressBytes, 9000), Some(9000), "another meter");
    assert_eq!(paid(&mut ledger, &one, Meter::EgressBytes, 9000), Some(2000), "its own is nearer");
    assert_eq!(paid(&mut ledger, &one, Meter::EgressBytes, 1), Some(0));
    assert_eq!(paid(&mut ledger, &other, Meter::EgressBytes, 9000), Some(2000), "what the other left of the project's");
    assert_eq!(ledger.used(&project()).egress_bytes, 5000, "to the byte");
    assert_eq!(ledger.total(&one).egress_bytes + ledger.total(&other).egress_bytes, 5000, "the parts make the whole");
    assert_eq!(paid(&mut ledger, &SandboxId::random(), Meter::EgressBytes, 1), None, "nobody");
    assert!(ledger.reached(&[project()]).iter().all(|reached| reached.hard));
}
