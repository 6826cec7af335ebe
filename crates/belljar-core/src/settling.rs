//! A change of state that was made and could not be written down: the store was away, or its disk full, just then.
//!
//! ```text
//!   record (pausing) ─► engine.pause ─► record (paused) fails ─► owed: written again until it is, or the sandbox is killed
//! ```
//! The sandbox is what the engine made of it, whatever the store says. Until the two agree it has no timers, and nothing else is done with it: the next
//! order would build on a state that it is not in.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::StoreError;
use belljar_types::{PausedMemory, Sandbox, SandboxState};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::owner::{Next, Order, Owner, killed};
use crate::{CoreError, chain};

const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(10);

impl Owner {
    /// Writes what is owed to the store, until that works.
    pub(crate) async fn settle(&mut self, owed: Sandbox) -> Next {
        let mut pause = FIRST_RETRY;
        let mut again = Instant::now() + pause;
        loop {
            tokio::select! {
                order = self.orders.recv() => match order {
                    None => return Next::Gone,
                    Some(Order::Kill(reply)) => return killed(reply),
                    Some(order) => refuse(order),
                },
                () = tokio::time::sleep_until(again) => {
                    match self.write_owed(&owed).await {
                        Ok(()) => {
                            info!(sandbox = %owed.id, state = %owed.state, "wrote down what had become of a sandbox");
                            self.settled();
                            return Next::Again;
                        }
                        Err(StoreError::Fenced { .. }) => return Next::Gone,
                        Err(error) => warn!(sandbox = %owed.id, state = %owed.state, error = chain(&error), retry_in = ?pause, "could not write down what became of a sandbox; trying again"),
                    }
                    pause = (pause * 2).min(LAST_RETRY);
                    again = Instant::now() + pause;
                }
            }
        }
    }

    async fn write_owed(&mut self, owed: &Sandbox) -> Result<(), StoreError> {
        match self.write(owed.clone()).await {
            // The answer to the first try may have been lost with the connection, and not what it wrote.
            Err(conflict @ StoreError::Conflict { .. }) => match self.shared.store.sandbox(&owed.project, &owed.id).await? {
                Some(stored) if stored.state == owed.state && stored.execution() == owed.execution() => {
                    self.show(stored);
                    Ok(())
                }
                _ => Err(conflict),
            },
            written => written,
        }
    }

    /// What follows a change of state that is written down.
    fn settled(&mut self) {
        match self.sandbox.state {
            SandboxState::Running => self.run_on(),
            SandboxState::Paused if self.sandbox.pause.is_none_or(|pause| pause.memory != PausedMemory::Resident) => self.place = None,
            _ => {}
        }
    }
}

fn refuse(order: Order) {
    let busy = || CoreError::Busy {
        reason: "what became of the sandbox is not written down yet, because the store failed".to_owned(),
        retry_after: Duration::from_secs(1),
    };
    match order {
        Order::Kill(reply) | Order::Change(_, reply) | Order::Pause(_, reply) | Order::Resume(_, reply) | Order::RollBack(_, reply) => {
            let _gone = reply.send(Err::<Arc<Sandbox>, _>(busy()));
        }
        Order::Snapshot(_, reply) => {
            let _gone = reply.send(Err(busy()));
        }
        Order::ReadMeter(reply) => {
            let _gone = reply.send(());
        }
    }
}
