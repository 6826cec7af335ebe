//! What becomes of sandboxes, heard as it happens by whoever listens in this server. For what has to arrive, through restarts and failures too, there are
//! webhooks; this is for whoever would else ask again and again, and can.

use std::sync::Arc;

use belljar_types::{ProjectId, Sandbox, Scope};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

use crate::{Caller, CoreError, Service};

/// Whoever hears more slowly than this misses some.
const WAITING: usize = 1024;

/// A sandbox whose state is another now.
#[derive(Debug, Clone)]
pub struct Change {
    /// As it is.
    pub sandbox: Arc<Sandbox>,
    /// As it was; nothing if it was only just asked for.
    pub before: Option<Arc<Sandbox>>,
}

/// Told by every owner.
pub(crate) struct News(Sender<Change>);

impl Default for News {
    fn default() -> Self {
        Self(Sender::new(WAITING))
    }
}

impl News {
    /// Tells whoever listens. What is in the store is told, and nothing before it is.
    pub(crate) fn tell(&self, sandbox: Arc<Sandbox>, before: Option<Arc<Sandbox>>) {
        if before.as_ref().is_none_or(|before| before.state != sandbox.state) {
            // Nobody may listen.
            let _ = self.0.send(Change { sandbox, before });
        }
    }

    fn of(&self, project: ProjectId) -> Changes {
        Changes { receiver: self.0.subscribe(), project }
    }
}

/// What becomes of one project's sandboxes from now on.
pub struct Changes {
    receiver: Receiver<Change>,
    project: ProjectId,
}

impl Changes {
    /// The next one; nothing when there will be none. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            match self.receiver.recv().await {
                Ok(change) if change.sandbox.project == self.project => return Some(change),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl Service {
    /// Listens to what becomes of the sandboxes of the caller's project.
    pub fn changes(&self, caller: &Caller) -> Result<Changes, CoreError> {
        caller.require(Scope::Read)?;
        Ok(self.shared.news.of(caller.project.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use belljar_types::{IsolationClass, OnTimeout, SandboxSpec, SandboxState, Timestamp};

    use super::*;

    fn sandbox(project: &str, state: SandboxState) -> Arc<Sandbox> {
        let (spec, at) = (SandboxSpec::on(Vec::new()), Timestamp(1));
        Arc::new(Sandbox {
            id: spec.id.clone(),
            project: project.parse().unwrap(),
            asked_with: None,
            state,
            class: IsolationClass::Gvisor,
            class_reason: String::new(),
            template: "base".parse().unwrap(),
            spec,
            metadata: std::collections::BTreeMap::new(),
            created_at: at,
            started_at: None,
            expires_at: None,
            leased_at: at,
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

    #[tokio::test]
    async fn a_project_hears_of_its_own_sandboxes_and_of_what_is_new() {
        let news = News::default();
        let mut ours = news.of("ours".parse().unwrap());
        let strangers = sandbox("theirs", SandboxState::Running);
        news.tell(Arc::clone(&strangers), None);
        let (creating, running) = (sandbox("ours", SandboxState::Creating), sandbox("ours", SandboxState::Running));
        news.tell(Arc::clone(&creating), None);
        news.tell(Arc::clone(&running), Some(Arc::clone(&running)));
        news.tell(Arc::clone(&running), Some(creating));
        drop(news);
        let mut heard = Vec::new();
        while let Some(change) = ours.next().await {
            assert_eq!(change.sandbox.project.as_str(), "ours");
            heard.push((change.before.map(|before| before.state), change.sandbox.state));
        }
        assert_eq!(heard, [(None, SandboxState::Creating), (Some(SandboxState::Creating), SandboxState::Running)]);
    }

    #[tokio::test]
    async fn whoever_is_too_slow_misses_some_and_hears_the_newest() {
        let news = News::default();
        let mut ours = news.of("ours".parse().unwrap());
        let first = sandbox("ours", SandboxState::Creating);
        for _ in 0..=WAITING * 2 {
            news.tell(Arc::clone(&first), None);
        }
        let last = sandbox("ours", SandboxState::Stopped);
        news.tell(Arc::clone(&last), None);
        drop(news);
        let (mut heard, mut newest) = (0, None);
        while let Some(change) = ours.next().await {
            (heard, newest) = (heard + 1, Some(change.sandbox.id.clone()));
        }
        assert!(heard <= WAITING * 2 && newest == Some(last.id.clone()), "{heard}");
    }
}
