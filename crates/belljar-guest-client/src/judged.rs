//! Tells which processes the host's kernel killed for memory. Inside a sandbox such a death looks like any other (a `SIGKILL` where the kernel is
//! shared, a plain exit code behind gVisor); only the host's counter knows, so an engine lets its agent's answers pass through here. So do those about
//! extended attributes where only the host can keep them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use belljar_ports::{
    ByteStream, EventStream, FileContent, Guest, GuestConnection, GuestError, GuestInfo, OutputStream, SearchStream, WishStream,
};
use belljar_types::{
    ArtifactId, ByteRange, ExitStatus, FileInfo, GuestMetrics, GuestPath, KillCause, ListOptions, ListeningPort, Offsets, OutputEvent,
    ProcessId, ProcessInfo, ProcessSpec, PtySize, SearchQuery, Signal, Termination, UserName, WishId, WriteOptions,
};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::attributes::{self, OutsideAttributes, is_unsupported};

/// How many processes' beginnings are remembered; beyond that the oldest knowledge is forgotten all at once.
const REMEMBERED: usize = 16_384;

/// The kernel's count of memory kills in one sandbox, and which deaths it explains.
pub struct OomLedger {
    count: Box<dyn Fn() -> u64 + Send + Sync>,
    looks_like_it: fn(Termination) -> bool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The count when this knowledge began. What was killed before is for somebody else to explain: an earlier server, who saw it.
    at_opening: u64,
    /// The count when a process was started.
    at_start: HashMap<ProcessId, u64>,
    /// Processes that were sent `SIGKILL` by request.
    asked: HashSet<ProcessId>,
    /// Deaths that were put down to memory.
    explained: HashSet<ProcessId>,
}

impl OomLedger {
    /// `count` reads the kernel's counter; `looks_like_it` says which ends a process can come to when it is killed for memory.
    pub fn new(count: impl Fn() -> u64 + Send + Sync + 'static, looks_like_it: fn(Termination) -> bool) -> Self {
        let known = Known::since(count());
        Self { count: Box::new(count), looks_like_it, known: Mutex::new(known) }
    }

    /// Whether there were memory kills since this ledger was opened that no process's end explains: then it was the agent, or something
    /// that took it along.
    pub fn has_unexplained_kills(&self) -> bool {
        let kills = self.kills();
        self.known().leaves_unexplained(kills)
    }

    fn kills(&self) -> u64 {
        (self.count)()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(&self, id: &ProcessId) {
        let kills = self.kills();
        let mut known = self.known();
        if known.at_start.len() >= REMEMBERED {
            *known = Known::since(kills);
        }
        known.at_start.entry(id.clone()).or_insert(kills);
    }

    fn asked_to_kill(&self, id: &ProcessId) {
        self.known().asked.insert(id.clone());
    }

    fn judge(&self, id: &ProcessId, mut exit: ExitStatus) -> ExitStatus {
        if exit.cause.is_some() || !(self.looks_like_it)(exit.termination) {
            return exit;
        }
        let kills = self.kills();
        let mut known = self.known();
        let before = known.at_start.get(id).copied().unwrap_or(0);
        let unexplained = kills > before && known.leaves_unexplained(kills);
        if known.explained.contains(id) || (unexplained && !known.asked.contains(id)) {
            known.explained.insert(id.clone());
            // What the kernel did, whatever the sandbox's own kernel made of it.
            exit.termination = Termination::Signaled(Signal::KILL.number());
            exit.cause = Some(KillCause::OutOfMemory);
        }
        exit
    }

    fn judge_info(&self, mut info: ProcessInfo) -> ProcessInfo {
        info.exit = info.exit.map(|exit| self.judge(&info.id, exit));
        info
    }
}

impl Known {
    fn since(kills: u64) -> Self {
        Self { at_opening: kills, ..Self::default() }
    }

    fn leaves_unexplained(&self, kills: u64) -> bool {
        kills.saturating_sub(self.at_opening) > self.explained.len() as u64
    }
}

/// An agent whose processes' ends are judged by the host's count.
pub struct JudgedGuest<G> {
    agent: G,
    ledger: Arc<OomLedger>,
    attributes: Option<Arc<dyn OutsideAttributes>>,
}

impl<G: Guest> JudgedGuest<G> {
    /// `agent`'s answers, judged by `ledger`, and with `attributes` where the sandbox has none.
    pub fn new(agent: G, ledger: Arc<OomLedger>, attributes: Option<Arc<dyn OutsideAttributes>>) -> Self {
        Self { agent, ledger, attributes }
    }

    fn judged(&self, id: &ProcessId, output: OutputStream) -> OutputStream {
        let (ledger, id) = (Arc::clone(&self.ledger), id.clone());
        Box::pin(output.map(move |event| match event {
            Ok(OutputEvent::Exit(exit)) => Ok(OutputEvent::Exit(ledger.judge(&id, exit))),
            other => other,
        }))
    }
}

#[async_trait]
impl<G: Guest> Guest for JudgedGuest<G> {
    async fn hello(&self) -> Result<GuestInfo, GuestError> {
        self.agent.hello().await
    }

    async fn start(&self, spec: &ProcessSpec) -> Result<ProcessInfo, GuestError> {
        self.ledger.started(&spec.id);
        Ok(self.ledger.judge_info(self.agent.start(spec).await?))
    }

    async fn start_attached(&self, spec: &ProcessSpec) -> Result<(ProcessInfo, OutputStream), GuestError> {
        self.ledger.started(&spec.id);
        let (info, output) = self.agent.start_attached(spec).await?;
        Ok((self.ledger.judge_info(info), self.judged(&spec.id, output)))
    }

    async fn processes(&self) -> Result<Vec<ProcessInfo>, GuestError> {
        let processes = self.agent.processes().await?;
        Ok(processes.into_iter().map(|info| self.ledger.judge_info(info)).collect())
    }

    async fn attach(&self, id: &ProcessId, from: Offsets) -> Result<OutputStream, GuestError> {
        Ok(self.judged(id, self.agent.attach(id, from).await?))
    }

    async fn wait(&self, id: &ProcessId, at_most: Duration) -> Result<Option<ExitStatus>, GuestError> {
        Ok(self.agent.wait(id, at_most).await?.map(|exit| self.ledger.judge(id, exit)))
    }

    async fn write_stdin(&self, id: &ProcessId, offset: u64, bytes: Bytes) -> Result<(), GuestError> {
        self.agent.write_stdin(id, offset, bytes).await
    }

    async fn close_stdin(&self, id: &ProcessId) -> Result<(), GuestError> {
        self.agent.close_stdin(id).await
    }

    async fn signal(&self, id: &ProcessId, signal: Signal) -> Result<(), GuestError> {
        if signal == Signal::KILL {
            self.ledger.asked_to_kill(id);
        }
        self.agent.signal(id, signal).await
    }

    async fn resize(&self, id: &ProcessId, size: PtySize) -> Result<(), GuestError> {
        self.agent.resize(id, size).await
    }

    async fn read_file(&self, path: &GuestPath, range: ByteRange, user: Option<&UserName>) -> Result<FileContent, GuestError> {
        self.agent.read_file(path, range, user).await
    }

    async fn write_file(&self, path: &GuestPath, options: &WriteOptions, content: ByteStream) -> Result<FileInfo, GuestError> {
        let mut info = self.agent.write_file(path, options, content).await?;
        if options.tell_attributes
            && let Some(outside) = &self.attributes
        {
            info.attributes = attributes::any(outside, &info).await;
        }
        Ok(info)
    }

    async fn stat(&self, path: &GuestPath, user: Option<&UserName>) -> Result<FileInfo, GuestError> {
        self.agent.stat(path, user).await
    }

    async fn list(&self, path: &GuestPath, options: &ListOptions) -> Result<Vec<FileInfo>, GuestError> {
        self.agent.list(path, options).await
    }

    async fn make_directory(&self, path: &GuestPath, user: Option<&UserName>) -> Result<bool, GuestError> {
        self.agent.make_directory(path, user).await
    }

    async fn rename(&self, from: &GuestPath, to: &GuestPath, user: Option<&UserName>) -> Result<FileInfo, GuestError> {
        self.agent.rename(from, to, user).await
    }

    async fn remove(&self, path: &GuestPath, user: Option<&UserName>) -> Result<(), GuestError> {
        self.agent.remove(path, user).await
    }

    async fn set_mode(&self, path: &GuestPath, mode: u32, user: Option<&UserName>) -> Result<(), GuestError> {
        self.agent.set_mode(path, mode, user).await
    }

    async fn set_owner(&self, path: &GuestPath, uid: Option<u32>, gid: Option<u32>, user: Option<&UserName>) -> Result<(), GuestError> {
        self.agent.set_owner(path, uid, gid, user).await
    }

    async fn get_xattr(&self, path: &GuestPath, name: &str, user: Option<&UserName>) -> Result<Option<Bytes>, GuestError> {
        match self.agent.get_xattr(path, name, user).await {
            Err(refused) if is_unsupported(&refused) => {
                let place = attributes::place(&self.agent, self.attributes.as_ref(), path, name, user, refused).await?;
                Ok(place.get().await?.map(Bytes::from))
            }
            done => done,
        }
    }

    async fn set_xattr(&self, path: &GuestPath, name: &str, value: Option<&[u8]>, user: Option<&UserName>) -> Result<(), GuestError> {
        match self.agent.set_xattr(path, name, value, user).await {
            Err(refused) if is_unsupported(&refused) => {
                attributes::place(&self.agent, self.attributes.as_ref(), path, name, user, refused).await?.set(value).await
            }
            done => done,
        }
    }

    async fn watch(&self, path: &GuestPath, recursive: bool, user: Option<&UserName>) -> Result<EventStream, GuestError> {
        self.agent.watch(path, recursive, user).await
    }

    async fn search(&self, query: &SearchQuery) -> Result<SearchStream, GuestError> {
        self.agent.search(query).await
    }

    async fn ports(&self) -> Result<Vec<ListeningPort>, GuestError> {
        self.agent.ports().await
    }

    async fn connect(&self, port: u16) -> Result<GuestConnection, GuestError> {
        self.agent.connect(port).await
    }

    async fn metrics(&self) -> Result<GuestMetrics, GuestError> {
        self.agent.metrics().await
    }

    async fn wishes(&self) -> Result<WishStream, GuestError> {
        self.agent.wishes().await
    }

    async fn answer_wish(&self, id: WishId, answer: Result<&ArtifactId, &str>) -> Result<(), GuestError> {
        self.agent.answer_wish(id, answer).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn ledger(count: &Arc<AtomicU64>) -> OomLedger {
        let count = count.clone();
        OomLedger::new(move || count.load(Ordering::Relaxed), |end| end != Termination::Exited(0))
    }

    fn end(termination: Termination) -> ExitStatus {
        ExitStatus { termination, cause: None }
    }

    #[test]
    fn a_kill_explains_one_death_and_only_one_that_looks_like_it() {
        let count = Arc::new(AtomicU64::new(3));
        let ledger = ledger(&count);
        let ids: Vec<ProcessId> = (0..4).map(|_| ProcessId::random()).collect();
        ids.iter().for_each(|id| ledger.started(id));
        assert_eq!(ledger.judge(&ids[0], end(Termination::Signaled(9))).cause, None);
        count.store(4, Ordering::Relaxed);
        assert_eq!(ledger.judge(&ids[1], end(Termination::Exited(0))).cause, None);
        let killed = ExitStatus { termination: Termination::Signaled(9), cause: Some(KillCause::OutOfMemory) };
        assert_eq!(ledger.judge(&ids[2], end(Termination::Exited(1))), killed);
        assert_eq!(ledger.judge(&ids[3], end(Termination::Exited(1))).cause, None, "one kill explains one death");
        assert_eq!(ledger.judge(&ids[2], end(Termination::Exited(1))), killed, "asked again, another answer");
    }

    #[test]
    fn who_comes_later_does_not_hold_an_old_kill_against_the_agent() {
        let count = Arc::new(AtomicU64::new(0));
        let (first, id) = (ledger(&count), ProcessId::random());
        first.started(&id);
        count.store(1, Ordering::Relaxed);
        assert!(first.judge(&id, end(Termination::Signaled(9))).cause.is_some());
        assert!(!first.has_unexplained_kills());
        let second = ledger(&count);
        assert!(!second.has_unexplained_kills(), "what an earlier server explained");
        count.store(2, Ordering::Relaxed);
        assert!(second.has_unexplained_kills() && first.has_unexplained_kills(), "what nobody has explained");
    }

    #[test]
    fn forgetting_the_oldest_makes_no_explained_kill_unexplained() {
        let count = Arc::new(AtomicU64::new(0));
        let (ledger, id) = (ledger(&count), ProcessId::random());
        ledger.started(&id);
        count.store(1, Ordering::Relaxed);
        assert!(ledger.judge(&id, end(Termination::Signaled(9))).cause.is_some());
        (0..REMEMBERED).for_each(|_| ledger.started(&ProcessId::random()));
        assert!(!ledger.has_unexplained_kills());
    }

    #[test]
    fn a_death_that_was_asked_for_is_not_put_down_to_memory() {
        let count = Arc::new(AtomicU64::new(0));
        let (ledger, id) = (ledger(&count), ProcessId::random());
        ledger.started(&id);
        ledger.asked_to_kill(&id);
        count.store(1, Ordering::Relaxed);
        assert_eq!(ledger.judge(&id, end(Termination::Signaled(9))).cause, None);
        assert!(ledger.has_unexplained_kills());
    }
}
