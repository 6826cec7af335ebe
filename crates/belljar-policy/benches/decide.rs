//! How long a decision takes with 2,000 policies of 10,000 rules each in memory, asked in random order so that no cache helps. Prints; checks nothing.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot run has nothing to tell, and tells the rest on standard output"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar_policy::{Compiled, Destination, HostName, NamePattern, Network, Operator, Policy, Request, Rule, decide};

const RULES: usize = 10_000;
const QUESTIONS: usize = 200_000;

fn main() {
    let policies: usize = std::env::var("BELLJAR_BENCH_POLICIES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let operator = Arc::new(Operator::default());
    let begin = Instant::now();
    let compiled: Vec<Compiled> = (0..policies).map(|number| Compiled::new(&policy(number), &operator).unwrap()).collect();
    println!("compiled {policies} policies of {RULES} rules in {:?}", begin.elapsed());
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % u64::try_from(below).unwrap()).unwrap()
    };
    let (mut times, mut allowed) = (Vec::with_capacity(QUESTIONS), 0);
    for _ in 0..QUESTIONS {
        let (policy, rule) = (draw(policies), draw(RULES * 2));
        let name = HostName::from_wire(format!("www.h{rule}.p{policy}.example.test").as_bytes()).unwrap();
        let request = Request::connection(Destination::Name(&name), 443);
        let begin = Instant::now();
        let verdict = decide(&compiled[policy], &request);
        times.push(begin.elapsed());
        allowed += usize::from(verdict.allow);
    }
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let mean = times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap();
    println!("decide: p50 {:?}, p99 {:?}, mean {mean:?} over {QUESTIONS} questions, {allowed} allowed", at(50), at(99));
}

/// Half exact names, half wildcards.
fn policy(number: usize) -> Policy {
    let host = |rule: usize| {
        let text = if rule.is_multiple_of(2) {
            format!("www.h{rule}.p{number}.example.test")
        } else {
            format!("*.h{rule}.p{number}.example.test")
        };
        NamePattern::try_from(text).unwrap()
    };
    let allow = (0..RULES).map(|rule| Rule { hosts: vec![host(rule)], ..Rule::default() }).collect();
    Policy { network: Some(Network { allow, ..Network::default() }), ..Policy::blank() }
}
