//! Listing: every sandbox once, in order, whatever the page size, the filter and the moment of creation.

use std::collections::BTreeMap;

use belljar_ports::{Order, PageRequest, SandboxFilter};
use belljar_types::{Sandbox, SandboxId, SandboxState, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Handle;

use crate::bed::{Bed, sandbox};

/// All pages, one after the other.
async fn walk(bed: &Bed, filter: &SandboxFilter, order: Order, limit: u32) -> Vec<SandboxId> {
    let mut ids = Vec::new();
    let mut after = None;
    loop {
        let page = bed.store.list(&bed.project, filter, &PageRequest { order, after, limit }).await.unwrap();
        assert!(page.sandboxes.len() <= limit as usize && page.unreadable.is_empty());
        assert!(page.next.is_none() || page.sandboxes.len() == limit as usize, "a page before the last is full");
        ids.extend(page.sandboxes.into_iter().map(|sandbox| sandbox.id));
        after = page.next;
        if after.is_none() {
            return ids;
        }
    }
}

pub(crate) async fn a_thousand_of_one_moment_are_each_listed_once(bed: &Bed) {
    let mut expected = Vec::new();
    for _ in 0..1000 {
        expected.push(bed.reserved().await.id);
    }
    expected.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    assert_eq!(walk(bed, &SandboxFilter::default(), Order::OldestFirst, 37).await, expected);
    expected.reverse();
    assert_eq!(walk(bed, &SandboxFilter::default(), Order::NewestFirst, 100).await, expected);
    assert_eq!(walk(bed, &SandboxFilter::default(), Order::NewestFirst, 1000).await, expected);
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) async fn filters_let_through_what_they_say(bed: &Bed) {
    let mut red = sandbox(&bed.project);
    red.metadata = pairs(&[("colour", "red"), ("size", "big")]);
    let mut blue = sandbox(&bed.project);
    blue.metadata = pairs(&[("colour", "blue"), ("size", "big"), ("long", &"x".repeat(100_000))]);
    blue.template = "other".parse().unwrap();
    bed.reserve(&red).await;
    bed.reserve(&blue).await;
    bed.advance(&mut red, SandboxState::Running).await;

    let by = |metadata| SandboxFilter { metadata, ..SandboxFilter::default() };
    let in_states = |states: &[SandboxState]| SandboxFilter { states: states.to_vec(), ..SandboxFilter::default() };
    let both = |a: &Sandbox, b: &Sandbox| {
        let mut ids = vec![a.id.clone(), b.id.clone()];
        ids.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        ids
    };
    let cases = [
        (by(pairs(&[("colour", "red")])), vec![red.id.clone()]),
        (by(pairs(&[("size", "big")])), both(&red, &blue)),
        (by(pairs(&[("size", "big"), ("colour", "blue")])), vec![blue.id.clone()]),
        (by(pairs(&[("size", "big"), ("colour", "green")])), vec![]),
        (by(pairs(&[("long", &"x".repeat(100_000))])), vec![blue.id.clone()]),
        (in_states(&[SandboxState::Running]), vec![red.id.clone()]),
        (in_states(&[SandboxState::Running, SandboxState::Creating]), both(&red, &blue)),
        (in_states(&[SandboxState::Stopped, SandboxState::Creating]), vec![blue.id.clone()]),
        (SandboxFilter { template: Some("other".parse().unwrap()), ..SandboxFilter::default() }, vec![blue.id.clone()]),
        (
            SandboxFilter {
                states: vec![SandboxState::Running],
                metadata: pairs(&[("size", "big")]),
                template: Some("base".parse().unwrap()),
            },
            vec![red.id.clone()],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(walk(bed, &filter, Order::OldestFirst, 10).await, expected, "{filter:?}");
    }

    // Metadata that was changed is found by what it is now.
    red.metadata = pairs(&[("colour", "green")]);
    bed.advance(&mut red, SandboxState::Running).await;
    assert_eq!(walk(bed, &by(pairs(&[("colour", "green")])), Order::OldestFirst, 10).await, [red.id.clone()]);
    assert_eq!(walk(bed, &by(pairs(&[("colour", "red")])), Order::OldestFirst, 10).await, []);
}

const STATES: [SandboxState; 4] = [SandboxState::Creating, SandboxState::Running, SandboxState::Stopped, SandboxState::Failed];

pub(crate) async fn pages_agree_with_a_model(bed: &Bed) {
    let mut all = Vec::new();
    for index in 0..48_u64 {
        let mut made = sandbox(&bed.project);
        made.created_at = Timestamp(10 + index * 7 % 5);
        made.template = ["base", "other"][usize::from(index % 3 == 0)].parse().unwrap();
        made.metadata = pairs(&[("half", ["a", "b"][index as usize % 2]), ("third", ["a", "b", "c"][index as usize % 3])]);
        bed.reserve(&made).await;
        let state = STATES[index as usize % 4];
        if state != SandboxState::Creating {
            bed.advance(&mut made, state).await;
        }
        all.push(made);
    }
    all.sort_by(|a, b| (a.created_at, a.id.as_str()).cmp(&(b.created_at, b.id.as_str())));

    let filters = (
        proptest::sample::subsequence(STATES.to_vec(), 0..=4),
        proptest::option::of(prop_oneof![Just("a"), Just("b"), Just("c")]),
        proptest::option::of(prop_oneof![Just("a"), Just("b"), Just("none")]),
        proptest::option::of(prop_oneof![Just("base"), Just("other")]),
        1..20_u32,
        any::<bool>(),
    );
    let outcome = tokio::task::block_in_place(|| {
        let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
        runner.run(&filters, |(states, third, half, template, limit, newest)| {
            let mut metadata = BTreeMap::new();
            metadata.extend(third.map(|value| ("third".to_owned(), value.to_owned())));
            metadata.extend(half.map(|value| ("half".to_owned(), value.to_owned())));
            let filter = SandboxFilter { states, metadata, template: template.map(|name| name.parse().unwrap()) };
            let mut expected: Vec<SandboxId> = all.iter().filter(|made| lets_through(&filter, made)).map(|made| made.id.clone()).collect();
            let order = if newest {
                expected.reverse();
                Order::NewestFirst
            } else {
                Order::OldestFirst
            };
            prop_assert_eq!(Handle::current().block_on(walk(bed, &filter, order, limit)), expected);
            Ok(())
        })
    });
    outcome.unwrap();
}

fn lets_through(filter: &SandboxFilter, sandbox: &Sandbox) -> bool {
    (filter.states.is_empty() || filter.states.contains(&sandbox.state))
        && filter.metadata.iter().all(|(key, value)| sandbox.metadata.get(key) == Some(value))
        && filter.template.as_ref().is_none_or(|template| *template == sandbox.template)
}
