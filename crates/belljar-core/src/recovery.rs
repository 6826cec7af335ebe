//! Coming back after any end of the server: what the store says and what is on the host are brought together.
//!
//! | in the store | on the host | what is done |
//! |---|---|---|
//! | creating | running, same run | it is finished: the request may be repeated by its key |
//! | creating | anything else | it is undone and marked failed |
//! | running | running, same run | it is adopted; processes and streams go on |
//! | running | ended, half, other run or nothing | what is left is removed, it is marked with its cause |
//! | pausing, paused, resuming | stands still | it is paused; whoever wants it resumes it |
//! | pausing, paused, resuming | running | it is adopted: its pause was not finished, or its resume was |
//! | one of a fork that was to be all or none, and was not finished | anything | it is ended, as not made |
//! | stopping | anything | its end is finished |
//! | ended or unknown | anything | an orphan: removed after a grace, if the store still knows nothing of it |
//! | any | its engine does not work | left alone; it answers that its engine is away |

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use belljar_ports::{Found, Presence, Runtime, StoreError};
use belljar_types::{EndCause, Execution, PausedMemory, Sandbox, SandboxId, SandboxState, Timestamp, escape_untrusted};
use futures_util::StreamExt;
use tracing::{error, info, warn};

use crate::owner::Owner;
use crate::shared::Shared;
use crate::statistics::Counters;
use crate::{CoreError, artifacts, chain, expiry, snapshot_recovery, telling, volume_recovery};

/// How many sandboxes are taken over at the same time.
const AT_ONCE: usize = 16;
/// How often ended sandboxes are looked through for those to forget.
const FORGET_EVERY: std::time::Duration = std::time::Duration::from_secs(3600);

/// Brings store and host together, and starts an owner for every sandbox that lives.
pub(crate) async fn recover(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let (rows, unreadable) = shared.store.unended().await?;
    let (snapshots, unreadable_snapshots) = shared.store.all_snapshots().await?;
    let unfinished_forks = snapshot_recovery::unfinished_forks(&snapshots);
    let mut known: HashSet<String> = rows.iter().map(|sandbox| sandbox.id.to_string()).collect();
    for row in unreadable {
        let id = escape_untrusted(row.id.as_bytes());
        error!(sandbox = id, detail = row.detail, "a sandbox's row cannot be read; the row and whatever belongs to it are left alone");
        known.insert(row.id);
    }
    shared.meters.drop_all_but(&known);
    let mut found: HashMap<SandboxId, Presence> = HashMap::new();
    let mut away = HashSet::new();
    let mut orphans = Vec::new();
    for engine in &shared.engines {
        let class = engine.report.class;
        if !engine.report.works() {
            away.insert(class);
            continue;
        }
        match engine.runtime.inventory().await {
            Ok(list) => {
                for Found { id, presence } in list {
                    if known.contains(id.as_str()) {
                        found.insert(id, presence);
                    } else {
                        orphans.push((Arc::clone(&engine.runtime), id));
                    }
                }
            }
            Err(failure) => {
                error!(%class, error = chain(&failure), "could not look for sandboxes of this class; they are left alone");
                away.insert(class);
            }
        }
    }
    // Before anybody is listened to: what programs ask for from then on is being kept by this server, under the same ids if they ask again.
    let half_kept = shared.store.unfinished_artifacts().await?;
    let work = rows.into_iter().map(|sandbox| {
        let presence = found.remove(&sandbox.id);
        let is_away = away.contains(&sandbox.class);
        let together = sandbox.begins_with.as_ref().and_then(|beginning| beginning.together.as_ref());
        let is_alone = together.is_some_and(|fork| unfinished_forks.contains(fork));
        async move {
            match shared.engine(sandbox.class) {
                Some(engine) if !is_away => take_over(shared, Arc::clone(&engine.runtime), sandbox, presence, is_alone).await,
                _ => warn!(sandbox = %sandbox.id, class = %sandbox.class, "the engine of this sandbox is away; the sandbox is left alone"),
            }
        }
    });
    futures_util::stream::iter(work).for_each_concurrent(AT_ONCE, |take| take).await;
    tokio::spawn(remove_orphans(Arc::clone(shared), orphans));
    snapshot_recovery::settle(shared, snapshots, unreadable_snapshots).await;
    volume_recovery::settle(shared).await?;
    tokio::spawn(artifacts::finish_removing(Arc::clone(shared), half_kept));
    tokio::spawn(expiry::remove_expired(Arc::downgrade(shared)));
    tokio::spawn(telling::deliver_all(Arc::downgrade(shared)));
    tokio::spawn(forget_old(Arc::downgrade(shared)));
    Ok(())
}

/// What is to become of a sandbox.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It runs: take it over.
    Adopt,
    /// It stands still, as it should.
    StandStill(PausedMemory),
    /// It is over, for this reason.
    End(EndCause, String),
}

fn judge(sandbox: &Sandbox, presence: Option<Presence>) -> Verdict {
    use SandboxState::{Creating, Paused, Pausing, Resuming, Running, Stopping};
    let end = |cause, detail: &str| Verdict::End(cause, detail.to_owned());
    match (sandbox.state, presence) {
        (Stopping, _) => match &sandbox.end {
            Some(ending) => Verdict::End(ending.cause, ending.detail.clone()),
            None => end(EndCause::Lost, "it was being ended"),
        },
        (Creating | Running, Some(Presence::Running(found))) if found.id == *sandbox.execution() => Verdict::Adopt,
        // A pause that was not finished, or a resume that was; which run it is then, the engine says.
        (Pausing | Paused | Resuming, Some(Presence::Running(_))) => Verdict::Adopt,
        // One that stands still although it should run is a pause whose last step failed: nothing of it is lost, so nobody ends it.
        (Running | Pausing | Paused | Resuming, Some(Presence::Paused { memory: true })) => Verdict::StandStill(PausedMemory::OnDisk),
        (Running | Pausing | Paused | Resuming, Some(Presence::Paused { memory: false })) => Verdict::StandStill(PausedMemory::Lost),
        (Running | Pausing | Paused | Resuming, Some(Presence::Frozen(_))) => Verdict::StandStill(PausedMemory::Resident),
        (Creating, _) => end(EndCause::NotMade, "the server ended while it was being made"),
        (_, Some(Presence::Ended(reason))) => Verdict::End(reason.into(), reason.to_string()),
        (_, Some(Presence::HalfMade)) => end(EndCause::Lost, "only a part of it was there when the server came back"),
        (_, Some(_)) => end(EndCause::Lost, "another run of it was there when the server came back"),
        (_, None) => end(EndCause::Lost, "it was gone when the server came back: the machine was restarted, or somebody removed it"),
    }
}

/// `is_alone`: it is one of a fork of which all were to be made or none, and not all were.
async fn take_over(shared: &Arc<Shared>, runtime: Arc<dyn Runtime>, sandbox: Sandbox, presence: Option<Presence>, is_alone: bool) {
    let id = sandbox.id.clone();
    let verdict = if is_alone {
        Verdict::End(EndCause::NotMade, "the server ended before all of its forks were made".to_owned())
    } else {
        judge(&sandbox, presence)
    };
    let place = shared.admission.take(&sandbox.spec.limits);
    let mut owner = Owner::new(shared, Arc::clone(&runtime), sandbox, place);
    let ran_meanwhile = verdict == Verdict::Adopt && matches!(owner.sandbox.state, SandboxState::Creating | SandboxState::Running);
    if let Err(failure) = owner.take_up_meter(ran_meanwhile).await {
        error!(sandbox = %id, error = chain(&failure), "could not read what a sandbox used before; it is left alone");
        return shared.remove(&id);
    }
    let recorded = match verdict {
        Verdict::End(cause, detail) => return owner.end(cause, detail, None).await,
        Verdict::StandStill(memory) => owner.stand_still(memory).await,
        Verdict::Adopt => match runtime.adopt(&id).await {
            // That may take long, and nothing else waits for it.
            Ok(execution) if owner.is_starting() => {
                tokio::spawn(finish_start(Arc::clone(shared), owner, execution));
                return;
            }
            Ok(execution) => owner.take_up(&execution, shared.config.restart_grace).await,
            Err(failure) => {
                error!(sandbox = %id, error = chain(&failure), "could not take over a sandbox");
                return owner.end(EndCause::Lost, "it did not answer when the server came back".to_owned(), None).await;
            }
        },
    };
    own_if(recorded, owner);
}

/// Goes on where the server before was: with what a template starts in a sandbox before it runs.
async fn finish_start(shared: Arc<Shared>, mut owner: Owner, execution: Execution) {
    shared.let_out_again(&owner.runtime, &owner.sandbox).await;
    if let Err(failure) = owner.start_up(&execution.id).await {
        let (id, detail) = (&owner.sandbox.id, chain(&failure));
        error!(sandbox = %id, error = detail, "a sandbox that was taken over did not start");
        if owner.sandbox.state == SandboxState::Creating {
            return owner.end(EndCause::NotMade, detail, None).await;
        }
    }
    let recorded = owner.take_up(&execution, shared.config.restart_grace).await;
    own_if(recorded, owner);
}

fn own_if(recorded: Result<(), CoreError>, owner: Owner) {
    let id = owner.sandbox.id.clone();
    match recorded {
        Ok(()) => {
            Counters::count(&owner.shared.counters.adopted);
            info!(sandbox = %id, "took over a sandbox");
            tokio::spawn(owner.own());
        }
        Err(failure) => {
            error!(sandbox = %id, error = chain(&failure), "could not record a sandbox that was taken over; it is left alone");
            owner.shared.remove(&id);
        }
    }
}

/// Removes what nothing knows of. It is left for a while first: an operator who put an old store in place by mistake can still stop.
async fn remove_orphans(shared: Arc<Shared>, orphans: Vec<(Arc<dyn Runtime>, SandboxId)>) {
    if orphans.is_empty() {
        return;
    }
    warn!(count = orphans.len(), grace = ?shared.config.orphan_grace, "there are sandboxes on the host that the store does not know; they will be removed");
    tokio::time::sleep(shared.config.orphan_grace).await;
    for (runtime, id) in orphans {
        match runtime.destroy(&id).await {
            Ok(()) => {
                Counters::count(&shared.counters.orphans_removed);
                info!(sandbox = %id, "removed a sandbox that the store does not know");
            }
            Err(failure) => error!(sandbox = %id, error = chain(&failure), "could not remove a sandbox that the store does not know"),
        }
    }
}

/// Forgets sandboxes that ended long ago, for as long as the service lives.
async fn forget_old(shared: std::sync::Weak<Shared>) {
    loop {
        {
            let Some(shared) = shared.upgrade() else { return };
            let keep = u64::try_from(shared.config.keep_ended.as_millis()).unwrap_or(u64::MAX);
            let before = Timestamp(Timestamp::now().0.saturating_sub(keep));
            match shared.store.forget(shared.epoch, before).await {
                Ok(0) => {}
                Ok(count) => info!(count, "forgot sandboxes that ended long ago"),
                Err(failure) => {
                    shared.note(&failure);
                    warn!(error = chain(&failure), "could not forget old sandboxes");
                }
            }
        }
        tokio::time::sleep(FORGET_EVERY).await;
    }
}
