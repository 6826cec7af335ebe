//! A guest whose verbs are written down: what is done inside a sandbox through any front passes here.
//!
//! Starting a process and changing a file are recorded before they are done. Of output and of files, bytes are counted and digested as they
//! pass; a digest that does not cover every byte is left out rather than told. Looking (stat, list, search, watch, metrics) is not recorded.

mod content;
mod told;
mod tolled;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belljar_ports::{
    ByteStream, EventStream, FileContent, Guest, GuestConnection, GuestError, GuestInfo, OutputStream, SearchStream, WishStream,
};
use belljar_types::{
    ArtifactId, AuditAction, AuditEvent, ByteRange, ExitStatus, FileInfo, GuestMetrics, GuestPath, ListOptions, ListeningPort, Offsets,
    Phase, ProcessId, ProcessInfo, ProcessSpec, PtySize, SearchQuery, Signal, UserName, WishId, WriteOptions, audit_text,
};
use bytes::Bytes;

use crate::metering::Counts;
use crate::recording::Recorder;
use crate::taping::Taping;
use content::{Digested, Reading, digest_file, watch_output, watch_reading};
pub(crate) use told::Told;
use tolled::tolled;

/// Whose doing it is, and where it is written.
#[derive(Clone)]
pub(crate) struct Witness {
    recorder: Recorder,
    /// An event without its action.
    template: AuditEvent,
    told: Arc<Told>,
    counts: Counts,
}

impl Witness {
    pub(crate) fn new(recorder: Recorder, template: AuditEvent, told: Arc<Told>, counts: Counts) -> Self {
        Self { recorder, template, told, counts }
    }

    fn event(&self, action: AuditAction) -> AuditEvent {
        AuditEvent { action, ..self.template.clone() }
    }

    async fn intend(&self, action: AuditAction) -> Result<(), GuestError> {
        self.recorder.intend(self.event(action)).await.map_err(GuestError::Unrecorded)
    }

    async fn note(&self, action: AuditAction) {
        self.recorder.note(self.event(action)).await;
    }

    fn later(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.recorder.later(work);
    }

    /// The end of a process, the first time that anybody sees it.
    async fn ended(&self, id: &ProcessId, exit: &ExitStatus, output: Option<(Digested, Digested)>) {
        if self.told.first_time(id) {
            let (stdout, stderr) = output.map_or((None, None), |(stdout, stderr)| (Some(stdout.finish()), Some(stderr.finish())));
            self.note(AuditAction::exec_ended(id.as_str(), exit, stdout, stderr)).await;
        }
    }
}

/// Counts a start when it is answered or given up: a budget that it uses up may stop the sandbox before it could answer.
struct Counted<'a>(&'a Counts);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.execution();
    }
}

/// A file verb at some phase.
fn file(verb: &'static str, phase: Phase, path: &GuestPath) -> AuditAction {
    AuditAction::File { verb: verb.to_owned(), phase, path: audit_text(path.as_bytes()), to: None, content: None }
}

pub(crate) struct Recorded {
    inner: Arc<dyn Guest>,
    witness: Witness,
    taping: Option<Taping>,
}

impl Recorded {
    pub(crate) fn new(inner: Arc<dyn Guest>, witness: Witness, taping: Option<Taping>) -> Self {
        Self { inner, witness, taping }
    }

    fn started(&self, spec: &ProcessSpec) {
        if let Some(taping) = &self.taping {
            taping.started(&self.inner, spec);
        }
    }

    /// Changes a file, written down before and after.
    async fn change<T>(
        &self,
        action: impl Fn(Phase) -> AuditAction,
        work: impl Future<Output = Result<T, GuestError>> + Send,
    ) -> Result<T, GuestError> {
        self.witness.intend(action(Phase::Intent)).await?;
        let result = work.await;
        self.witness.note(action(if result.is_ok() { Phase::Done } else { Phase::Failed })).await;
        result
    }
}

#[async_trait]
impl Guest for Recorded {
    async fn hello(&self) -> Result<GuestInfo, GuestError> {
        self.inner.hello().await
    }

    async fn start(&self, spec: &ProcessSpec) -> Result<ProcessInfo, GuestError> {
        self.witness.intend(AuditAction::exec_started(spec)).await?;
        let _counted = Counted(&self.witness.counts);
        let info = self.inner.start(spec).await?;
        self.started(spec);
        Ok(info)
    }

    async fn start_attached(&self, spec: &ProcessSpec) -> Result<(ProcessInfo, OutputStream), GuestError> {
        self.witness.intend(AuditAction::exec_started(spec)).await?;
        let counted = Counted(&self.witness.counts);
        let (info, output) = self.inner.start_attached(spec).await?;
        drop(counted);
        self.started(spec);
        let output = watch_output(output, self.witness.clone(), info.id.clone(), Offsets::default());
        Ok((info, output))
    }

    async fn processes(&self) -> Result<Vec<ProcessInfo>, GuestError> {
        self.inner.processes().await
    }

    async fn attach(&self, id: &ProcessId, from: Offsets) -> Result<OutputStream, GuestError> {
        let output = self.inner.attach(id, from).await?;
        Ok(watch_output(output, self.witness.clone(), id.clone(), from))
    }

    async fn wait(&self, id: &ProcessId, at_most: Duration) -> Result<Option<ExitStatus>, GuestError> {
        let exit = self.inner.wait(id, at_most).await?;
        if let Some(exit) = &exit {
            self.witness.ended(id, exit, None).await;
        }
        Ok(exit)
    }

    async fn write_stdin(&self, id: &ProcessId, offset: u64, bytes: Bytes) -> Result<(), GuestError> {
        self.inner.write_stdin(id, offset, bytes).await
    }

    async fn close_stdin(&self, id: &ProcessId) -> Result<(), GuestError> {
        self.inner.close_stdin(id).await
    }

    async fn signal(&self, id: &ProcessId, signal: Signal) -> Result<(), GuestError> {
        self.inner.signal(id, signal).await
    }

    async fn resize(&self, id: &ProcessId, size: PtySize) -> Result<(), GuestError> {
        self.inner.resize(id, size).await?;
        if let Some(taping) = &self.taping {
            taping.resized(id, size);
        }
        Ok(())
    }

    async fn read_file(&self, path: &GuestPath, range: ByteRange, user: Option<&UserName>) -> Result<FileContent, GuestError> {
        self.witness.note(file("read", Phase::Intent, path)).await;
        let content = self.inner.read_file(path, range, user).await?;
        let there = content.info.size.saturating_sub(range.offset);
        let reading = Reading::new(self.witness.clone(), path, range.length.map_or(there, |length| length.min(there)));
        Ok(FileContent { bytes: watch_reading(content.bytes, reading), ..content })
    }

    async fn write_file(&self, path: &GuestPath, options: &WriteOptions, content: ByteStream) -> Result<FileInfo, GuestError> {
        self.witness.intend(file("write", Phase::Intent, path)).await?;
        let (content, digest) = digest_file(content);
        let result = self.inner.write_file(path, options, content).await;
        let done = file("write", if result.is_ok() { Phase::Done } else { Phase::Failed }, path);
        digest.tell(&self.witness, done).await;
        result
    }

    async fn stat(&self, path: &GuestPath, user: Option<&UserName>) -> Result<FileInfo, GuestError> {
        self.inner.stat(path, user).await
    }

    async fn list(&self, path: &GuestPath, options: &ListOptions) -> Result<Vec<FileInfo>, GuestError> {
        self.inner.list(path, options).await
    }

    async fn make_directory(&self, path: &GuestPath, user: Option<&UserName>) -> Result<bool, GuestError> {
        self.change(|phase| file("make_directory", phase, path), self.inner.make_directory(path, user)).await
    }

    async fn rename(&self, from: &GuestPath, to: &GuestPath, user: Option<&UserName>) -> Result<FileInfo, GuestError> {
        let renamed = |phase| AuditAction::File {
            verb: "rename".to_owned(),
            phase,
            path: audit_text(from.as_bytes()),
            to: Some(audit_text(to.as_bytes())),
            content: None,
        };
        self.change(renamed, self.inner.rename(from, to, user)).await
    }

    async fn remove(&self, path: &GuestPath, user: Option<&UserName>) -> Result<(), GuestError> {
        self.change(|phase| file("remove", phase, path), self.inner.remove(path, user)).await
    }

    async fn set_mode(&self, path: &GuestPath, mode: u32, user: Option<&UserName>) -> Result<(), GuestError> {
        self.change(|phase| file("set_mode", phase, path), self.inner.set_mode(path, mode, user)).await
    }

    async fn set_owner(&self, path: &GuestPath, uid: Option<u32>, gid: Option<u32>, user: Option<&UserName>) -> Result<(), GuestError> {
        self.change(|phase| file("set_owner", phase, path), self.inner.set_owner(path, uid, gid, user)).await
    }

    async fn get_xattr(&self, path: &GuestPath, name: &str, user: Option<&UserName>) -> Result<Option<Bytes>, GuestError> {
        self.inner.get_xattr(path, name, user).await
    }

    async fn set_xattr(&self, path: &GuestPath, name: &str, value: Option<&[u8]>, user: Option<&UserName>) -> Result<(), GuestError> {
        self.change(|phase| file("set_attribute", phase, path), self.inner.set_xattr(path, name, value, user)).await
    }

    async fn watch(&self, path: &GuestPath, recursive: bool, user: Option<&UserName>) -> Result<EventStream, GuestError> {
        self.inner.watch(path, recursive, user).await
    }

    async fn search(&self, query: &SearchQuery) -> Result<SearchStream, GuestError> {
        self.inner.search(query).await
    }

    async fn ports(&self) -> Result<Vec<ListeningPort>, GuestError> {
        self.inner.ports().await
    }

    async fn connect(&self, port: u16) -> Result<GuestConnection, GuestError> {
        self.witness.note(AuditAction::Port { verb: "connect".to_owned(), port }).await;
        Ok(tolled(self.inner.connect(port).await?, &self.witness.counts))
    }

    async fn metrics(&self) -> Result<GuestMetrics, GuestError> {
        self.inner.metrics().await
    }

    async fn wishes(&self) -> Result<WishStream, GuestError> {
        self.inner.wishes().await
    }

    async fn answer_wish(&self, id: WishId, answer: Result<&ArtifactId, &str>) -> Result<(), GuestError> {
        self.inner.answer_wish(id, answer).await
    }
}
