//! A caller's use of one running sandbox: its agent's verbs, counted as activity while the session lives.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{Guest, GuestConnection, GuestError};
use belljar_types::{Sandbox, SandboxState};
use tokio::sync::watch;

use crate::CoreError;
use crate::activity::Activity;
use crate::policies::check_ingress;

/// How long to wait for the owner to notice that a sandbox has ended, when its agent has gone silent.
const NOTICE: Duration = Duration::from_secs(2);

/// The agent of a running sandbox, in use.
pub struct Session {
    guest: Arc<dyn Guest>,
    view: watch::Receiver<Arc<Sandbox>>,
    activity: Arc<Activity>,
}

impl Session {
    pub(crate) fn new(guest: Arc<dyn Guest>, view: watch::Receiver<Arc<Sandbox>>, activity: Arc<Activity>) -> Self {
        activity.enter();
        Self { guest, view, activity }
    }

    /// The sandbox as it is now.
    pub fn sandbox(&self) -> Arc<Sandbox> {
        Arc::clone(&self.view.borrow())
    }

    /// The agent, for streams that outlive a borrow of the session. Keep the session beside it.
    pub fn guest(&self) -> &Arc<dyn Guest> {
        &self.guest
    }

    /// A connection to a port inside, if the sandbox's policy opens it.
    pub async fn connect(&self, port: u16) -> Result<GuestConnection, GuestError> {
        check_ingress(&self.sandbox(), port)?;
        self.guest.connect(port).await
    }

    /// Waits until the sandbox no longer runs, and says how it is then.
    pub async fn ended(&self) -> Arc<Sandbox> {
        let mut view = self.view.clone();
        match view.wait_for(|sandbox| sandbox.state == SandboxState::Stopping || sandbox.state.has_ended()).await {
            Ok(sandbox) => Arc::clone(&sandbox),
            Err(_owner_gone) => self.sandbox(),
        }
    }

    /// Says why something inside was not done: an agent that went silent because its sandbox ended is told as that end.
    pub async fn explain(&self, error: GuestError) -> CoreError {
        if !matches!(error, GuestError::Lost { .. } | GuestError::Misbehaved { .. }) {
            return error.into();
        }
        match tokio::time::timeout(NOTICE, self.ended()).await {
            Ok(sandbox) => match &sandbox.end {
                Some(end) => CoreError::Ended { id: sandbox.id.clone(), end: end.clone() },
                None => error.into(),
            },
            Err(_still_running) => error.into(),
        }
    }
}

impl Deref for Session {
    type Target = dyn Guest;
    fn deref(&self) -> &Self::Target {
        &*self.guest
    }
}

impl Clone for Session {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.guest), self.view.clone(), Arc::clone(&self.activity))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.activity.leave();
    }
}
