//! Whose a sandbox is, asked by those who come without a key: programs' ports are public, health checks and signed file links carry no token.
//!
//! What was seen once is remembered; what was not is looked for in the store, so that nothing is forgotten by a restart for good. Who does not even say
//! which sandbox is compared with all that are remembered, and those are made to be all that live, once in a while: anybody may ask, and must not be
//! able to make it costly.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use belljar_core::{Caller, CoreError, DEFAULT_PROJECT, Service};
use belljar_types::{KeyId, ProjectId, SandboxId, SandboxState, Scope};

/// Of more than this many the oldest are not remembered, only looked up.
const MOST: usize = 100_000;
/// What lives is looked through at most this often.
const REFRESH_EVERY: Duration = Duration::from_secs(1);

type Owned = (SandboxId, ProjectId);

/// Sandboxes and their projects.
pub struct Known {
    service: Arc<Service>,
    memory: Mutex<Memory>,
}

impl Known {
    /// Nothing is known yet.
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, memory: Mutex::new(Memory::new(MOST)) }
    }

    /// Remembers whose a sandbox is.
    pub fn note(&self, id: &SandboxId, project: &ProjectId) {
        self.lock().note(id, project);
    }

    /// It has ended.
    pub fn forget(&self, id: &SandboxId) {
        self.lock().forget(id);
    }

    /// The sandbox of which this is true.
    pub fn find(&self, is_it: impl Fn(&SandboxId, &ProjectId) -> bool) -> Option<SandboxId> {
        let among = |owned: Vec<Owned>| owned.into_iter().find(|(id, project)| is_it(id, project)).map(|(id, _)| id);
        // Not while others wait for what is remembered.
        let remembered = self.lock().all();
        among(remembered).or_else(|| {
            let learned = self.lock().refresh(Instant::now(), || self.live());
            among(learned)
        })
    }

    /// All that live, oldest first.
    fn live(&self) -> Vec<Owned> {
        let Ok(project) = DEFAULT_PROJECT.parse() else { return Vec::new() };
        let mut live = self.service.live(&acting_for(project, Scope::Admin)).unwrap_or_default();
        live.retain(|sandbox| !sandbox.state.has_ended() && sandbox.state != SandboxState::Stopping);
        live.sort_by_key(|sandbox| sandbox.created_at);
        live.iter().map(|sandbox| (sandbox.id.clone(), sandbox.project.clone())).collect()
    }

    /// Whose a live sandbox is.
    pub async fn project_of(&self, id: &SandboxId) -> Result<Option<ProjectId>, CoreError> {
        let remembered = self.lock().project_of(id);
        if remembered.is_some() {
            return Ok(remembered);
        }
        let everyone = acting_for(DEFAULT_PROJECT.parse()?, Scope::Admin);
        for project in self.service.projects(&everyone).await? {
            let sandbox = self.service.sandbox(&acting_for(project.id.clone(), Scope::Read), id).await;
            if sandbox.is_ok_and(|sandbox| !sandbox.state.has_ended()) {
                self.note(id, &project.id);
                return Ok(Some(project.id));
            }
        }
        Ok(None)
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is remembered.
struct Memory {
    most: usize,
    /// With the number under which each was noted.
    projects: HashMap<SandboxId, (ProjectId, u64)>,
    by_age: BTreeMap<u64, SandboxId>,
    noted: u64,
    refreshed: Option<Instant>,
}

impl Memory {
    fn new(most: usize) -> Self {
        Self { most, projects: HashMap::new(), by_age: BTreeMap::new(), noted: 0, refreshed: None }
    }

    fn note(&mut self, id: &SandboxId, project: &ProjectId) {
        self.forget(id);
        while self.projects.len() >= self.most
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.projects.remove(&oldest);
        }
        self.noted += 1;
        self.by_age.insert(self.noted, id.clone());
        self.projects.insert(id.clone(), (project.clone(), self.noted));
    }

    fn forget(&mut self, id: &SandboxId) {
        if let Some((_, number)) = self.projects.remove(id) {
            self.by_age.remove(&number);
        }
    }

    fn project_of(&self, id: &SandboxId) -> Option<ProjectId> {
        self.projects.get(id).map(|(project, _)| project.clone())
    }

    fn all(&self) -> Vec<Owned> {
        self.projects.iter().map(|(id, (project, _))| (id.clone(), project.clone())).collect()
    }

    /// Remembers all that live, if it is time for that, and no others. Gives back those that were not known.
    fn refresh(&mut self, now: Instant, live: impl FnOnce() -> Vec<Owned>) -> Vec<Owned> {
        if self.refreshed.is_some_and(|at| now.saturating_duration_since(at) < REFRESH_EVERY) {
            return Vec::new();
        }
        self.refreshed = Some(now);
        let live = live();
        let living: BTreeSet<&SandboxId> = live.iter().map(|(id, _)| id).collect();
        let ended: Vec<SandboxId> = self.projects.keys().filter(|id| !living.contains(id)).cloned().collect();
        for id in &ended {
            self.forget(id);
        }
        let learned: Vec<Owned> = live.into_iter().filter(|(id, _)| !self.projects.contains_key(id)).collect();
        for (id, project) in &learned {
            self.note(id, project);
        }
        learned
    }
}

/// A caller that has shown no key but something else that is worth as much for one sandbox.
pub fn acting_for(project: ProjectId, scope: Scope) -> Caller {
    // No key was shown; the audit log is to say so.
    let key: KeyId = "sandboxaccesstoken".parse().expect("a valid id");
    Caller { key, project, scopes: BTreeSet::from([scope]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(count: usize) -> Vec<Owned> {
        (0..count).map(|number| (SandboxId::random(), format!("p{number}").parse().unwrap())).collect()
    }

    #[test]
    fn the_oldest_make_room_for_the_newest() {
        let (mut memory, all) = (Memory::new(3), owned(5));
        for (id, project) in &all[..3] {
            memory.note(id, project);
        }
        memory.note(&all[0].0, &all[0].1);
        for (id, project) in &all[3..] {
            memory.note(id, project);
        }
        let known: Vec<bool> = all.iter().map(|(id, project)| memory.project_of(id).as_ref() == Some(project)).collect();
        assert_eq!(known, [true, false, false, true, true], "the first was seen again after the others");
        for (id, _) in &all {
            memory.forget(id);
        }
        assert!(memory.projects.is_empty() && memory.by_age.is_empty());
    }

    #[test]
    fn all_that_live_are_learned_and_no_more_often_than_may_be() {
        let (mut memory, all, start) = (Memory::new(10), owned(4), Instant::now());
        let after = |millis| start + Duration::from_millis(millis);
        let (ended, living) = (&all[0], &all[1..]);
        memory.note(&ended.0, &ended.1);
        memory.note(&living[0].0, &living[0].1);
        assert_eq!(memory.refresh(after(0), || living.to_vec()), &living[1..], "after a restart, say, nobody has noted these");
        assert_eq!((memory.project_of(&ended.0), memory.all().len()), (None, 3));
        let more = owned(1);
        assert_eq!(memory.refresh(after(999), || unreachable!("asked too often")), []);
        assert_eq!(memory.refresh(after(1000), || more.clone()), more);
        assert_eq!(memory.all(), more, "all others have ended");
    }

    #[test]
    fn more_that_live_than_are_remembered_are_looked_through_all_the_same() {
        let (mut memory, all) = (Memory::new(3), owned(5));
        assert_eq!(memory.refresh(Instant::now(), || all.clone()), all);
        assert!(memory.all().iter().all(|one| all[2..].contains(one)) && memory.all().len() == 3, "the newest are remembered");
    }
}
