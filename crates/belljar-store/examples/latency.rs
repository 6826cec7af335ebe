//! How long the verbs on the way of a create take, one after another, on a store of your choice:
//! `cargo run --release -p belljar-store --example latency -- sqlite:/tmp/latency.db`
#![expect(clippy::print_stdout, reason = "the figures are the point")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use belljar_types::{
    EndCause, IsolationClass, LayerDigest, OnTimeout, Project, ProjectId, Quota, Sandbox, SandboxEnd, SandboxSpec, SandboxState, Timestamp,
};

const ROUNDS: usize = 2000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: latency URL")?;
    let store = belljar_store::open(&url).await?;
    let project: ProjectId = format!("latency-{}", std::process::id()).parse()?;
    let quota = Quota { sandboxes: u32::MAX, cpu_millis: u64::MAX, memory_bytes: u64::MAX, disk_bytes: u64::MAX };
    store.add_project(&Project { id: project.clone(), quota, created_at: Timestamp::now() }).await?;
    let epoch = store.begin_epoch().await?;

    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        let mut sandbox = fresh(&project)?;
        let execution = sandbox.execution().clone();
        let start = Instant::now();
        store.reserve(epoch, &sandbox, None).await?;
        times[0].push(start.elapsed());

        sandbox.state = SandboxState::Running;
        let start = Instant::now();
        store.record(epoch, SandboxState::Creating, &execution, &sandbox).await?;
        times[1].push(start.elapsed());

        let start = Instant::now();
        store.sandbox(&project, &sandbox.id).await?;
        times[2].push(start.elapsed());

        sandbox.state = SandboxState::Stopped;
        sandbox.end = Some(SandboxEnd { cause: EndCause::Requested, detail: String::new(), at: Timestamp::now() });
        let start = Instant::now();
        store.record(epoch, SandboxState::Running, &execution, &sandbox).await?;
        times[3].push(start.elapsed());
    }
    for (verb, times) in ["reserve", "record running", "get", "record stopped"].into_iter().zip(&mut times) {
        times.sort_unstable();
        println!("{verb:15} p50 {:>9.3?}  p99 {:>9.3?}  max {:>9.3?}", times[ROUNDS / 2], times[ROUNDS * 99 / 100], times[ROUNDS - 1]);
    }
    store.remove_project(&project).await?;
    store.close().await;
    Ok(())
}

fn fresh(project: &ProjectId) -> Result<Sandbox, Box<dyn Error>> {
    let now = Timestamp::now();
    let layer: LayerDigest = "a".repeat(64).parse()?;
    let spec = SandboxSpec::on(vec![layer]);
    Ok(Sandbox {
        id: spec.id.clone(),
        project: project.clone(),
        asked_with: None,
        state: SandboxState::Creating,
        class: IsolationClass::Gvisor,
        class_reason: "the strongest class that works here".to_owned(),
        template: "base".parse()?,
        spec,
        metadata: BTreeMap::from([("owner".to_owned(), "somebody".to_owned()), ("purpose".to_owned(), "latency".to_owned())]),
        created_at: now,
        started_at: None,
        expires_at: Some(now.plus(Duration::from_secs(300))),
        leased_at: now,
        idle_timeout: None,
        on_timeout: OnTimeout::Kill,
        auto_resume: false,
        pause: None,
        stood_still: Duration::ZERO,
        origin: None,
        begins_with: None,
        last_snapshot: None,
        end: None,
    })
}
