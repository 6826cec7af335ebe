//! With a clock that only these tests move: what happens in a file and when, and what is told of it.

use futures_util::stream;

use super::*;

const A: &str = "a";
const B: &str = "b";

/// At so many milliseconds: an event of a file, and what is in that file by then.
type Happens = (u64, &'static str, FileEventKind, Option<u64>);

fn event(name: &str, kind: FileEventKind) -> FileEvent {
    FileEvent { name: name.into(), kind }
}

/// What is told, and when.
async fn told(happens: Vec<Happens>) -> Vec<(u64, String, FileEventKind)> {
    let began = Instant::now();
    let since = move || u64::try_from(began.elapsed().as_millis()).unwrap();
    let script = happens.clone();
    let events = stream::iter(happens).then(move |(at, name, kind, _)| async move {
        tokio::time::sleep_until(began + Duration::from_millis(at)).await;
        Ok(event(name, kind))
    });
    let content = |name: &[u8]| {
        let latest = script.iter().rev().find(|(at, whose, ..)| *at <= since() && whose.as_bytes() == name);
        latest.and_then(|(.., content)| *content).map(|content| Content { modified_nanos: 0, size: content })
    };
    let (mut writes, mut told) = (Writes::new(events.boxed()), Vec::new());
    while let Some(step) = writes.next().await {
        let event = match step {
            Step::Tell(event) => {
                if event.kind == FileEventKind::Written {
                    writes.told(content(&event.name));
                }
                event
            }
            Step::LeftOut(event) if writes.is_news(content(&event.name)) => event,
            Step::LeftOut(_) => continue,
            Step::Failed(error) => panic!("{error}"),
        };
        told.push((since(), String::from_utf8(event.name).unwrap(), event.kind));
    }
    told
}

fn times(told: &[(u64, String, FileEventKind)], name: &str) -> Vec<u64> {
    told.iter().filter(|(_, whose, kind)| whose == name && *kind == FileEventKind::Written).map(|(at, ..)| *at).collect()
}

#[tokio::test(start_paused = true)]
async fn a_write_and_its_close_are_told_once_and_the_last_write_always() {
    use FileEventKind::Written;
    let steadily = |until| (0..=until).step_by(10).map(|at| (at, A, Written, Some(at))).collect::<Vec<_>>();
    for (happens, expected) in [
        (vec![(0, A, Written, Some(1)), (5, A, Written, Some(1))], vec![0]),
        (vec![(0, A, Written, Some(1)), (5, A, Written, Some(2)), (500, B, Written, Some(1))], vec![0, 25]),
        (vec![(0, A, Written, Some(1)), (5, A, Written, Some(2))], vec![0, 5]),
        (vec![(0, A, Written, Some(1)), (5, A, Written, Some(2)), (6, A, Written, Some(2)), (500, B, Written, Some(1))], vec![0, 26]),
        (vec![(0, A, Written, Some(1)), (5, A, Written, Some(2)), (7, B, Written, Some(1))], vec![0, 7]),
        (vec![(0, A, Written, Some(1)), (30, A, Written, Some(1))], vec![0, 30]),
        (vec![(0, A, Written, Some(1)), (5, A, Written, None), (6, A, FileEventKind::Removed, None)], vec![0]),
        ([steadily(90), vec![(500, B, Written, Some(1))]].concat(), vec![0, 20, 40, 60, 80, 110]),
    ] {
        assert_eq!(times(&told(happens.clone()).await, A), expected, "{happens:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_write_is_told_at_once() {
    use FileEventKind::{Created, Removed, Written};
    let happens = vec![(0, A, Created, Some(1)), (1, A, Written, Some(1)), (2, A, Written, Some(1)), (3, A, Removed, None)];
    let kinds: Vec<_> = told(happens).await.into_iter().map(|(at, _, kind)| (at, kind)).collect();
    assert_eq!(kinds, [(0, Created), (1, Written), (3, Removed)]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_comes_after_what_was_before_it() {
    let lost = GuestError::Lost { operation: "watch", source: std::io::ErrorKind::BrokenPipe.into() };
    let write = || Ok(event(A, FileEventKind::Written));
    let mut writes = Writes::new(stream::iter([write(), write(), Err(lost)]).boxed());
    assert!(matches!(writes.next().await, Some(Step::Tell(_))));
    assert!(matches!(writes.next().await, Some(Step::LeftOut(_))));
    assert!(matches!(writes.next().await, Some(Step::Failed(_))));
    assert!(writes.next().await.is_none());
}
