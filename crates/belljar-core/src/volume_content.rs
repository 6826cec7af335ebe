//! The content of volumes, without a sandbox: every verb is of the caller's project, and what changes something is written down before and after.
//!
//! A volume may be used here while sandboxes have it, in whatever mode: this is how files come in and out of one that runs.

use std::sync::Arc;

use belljar_ports::{ContentStream, VolumeFile};
use belljar_types::{
    AuditAction, ByteRange, ContentDigest, EntryChange, Phase, Scope, Volume, VolumeEntry, VolumePath, VolumeWrite, audit_text,
};

use crate::recording::event;
use crate::{Caller, CoreError, Service};

/// What happens to a path, as the log tells it.
fn file(verb: &'static str, volume: &Volume, path: &VolumePath, to: Option<&VolumePath>) -> impl Fn(Phase) -> AuditAction + use<> {
    let in_volume = |path: &VolumePath| audit_text(format!("{}:/{}", volume.name, path.as_path().display()).as_bytes());
    let (path, to) = (in_volume(path), to.map(in_volume));
    move |phase| AuditAction::File { verb: verb.to_owned(), phase, path: path.clone(), to: to.clone(), content: None }
}

impl Service {
    /// What is at a path of a volume.
    pub async fn volume_entry(&self, caller: &Caller, which: &str, path: &VolumePath) -> Result<VolumeEntry, CoreError> {
        let volume = self.volume(caller, which).await?;
        Ok(self.shared.volumes.stat(&volume.id, path).await?)
    }

    /// What is in a directory of a volume, by path; at most `limit` entries.
    pub async fn volume_entries(
        &self,
        caller: &Caller,
        which: &str,
        path: &VolumePath,
        depth: u32,
        limit: u32,
    ) -> Result<Vec<VolumeEntry>, CoreError> {
        let volume = self.volume(caller, which).await?;
        Ok(self.shared.volumes.list(&volume.id, path, depth, limit).await?)
    }

    /// A file of a volume.
    pub async fn read_volume(&self, caller: &Caller, which: &str, path: &VolumePath, range: ByteRange) -> Result<VolumeFile, CoreError> {
        let volume = self.volume(caller, which).await?;
        let opened = self.shared.volumes.read(&volume.id, path, range).await?;
        self.shared.audit.note(event(caller, None, file("read", &volume, path, None)(Phase::Done))).await;
        Ok(opened)
    }

    /// Writes a file of a volume, wholly or not at all.
    pub async fn write_volume(
        &self,
        caller: &Caller,
        which: &str,
        path: &VolumePath,
        options: VolumeWrite,
        content: ContentStream,
    ) -> Result<VolumeEntry, CoreError> {
        let volume = self.writable_volume(caller, which).await?;
        let action = file("write", &volume, path, None);
        self.shared.audit.intend(event(caller, None, action(Phase::Intent))).await?;
        let written = self.shared.volumes.write(&volume.id, path, options, content).await;
        let mut told = action(if written.is_ok() { Phase::Done } else { Phase::Failed });
        if let (AuditAction::File { content, .. }, Ok(entry)) = (&mut told, &written) {
            *content = Some(ContentDigest { bytes: entry.size, sha256: None });
        }
        self.shared.audit.note(event(caller, None, told)).await;
        Ok(written?)
    }

    /// Makes a directory of a volume; with `parents` those above it too.
    pub async fn make_volume_directory(
        &self,
        caller: &Caller,
        which: &str,
        path: &VolumePath,
        change: EntryChange,
        parents: bool,
    ) -> Result<VolumeEntry, CoreError> {
        let volume = self.writable_volume(caller, which).await?;
        let (action, volumes, at) = (file("make_directory", &volume, path, None), Arc::clone(&self.shared.volumes), path.clone());
        self.recorded(caller, None, action, async move { Ok(volumes.make_directory(&volume.id, &at, change, parents).await?) }).await
    }

    /// Changes owner and permissions of something in a volume.
    pub async fn change_volume_entry(
        &self,
        caller: &Caller,
        which: &str,
        path: &VolumePath,
        change: EntryChange,
    ) -> Result<VolumeEntry, CoreError> {
        let volume = self.writable_volume(caller, which).await?;
        let (action, volumes, at) = (file("set_mode", &volume, path, None), Arc::clone(&self.shared.volumes), path.clone());
        self.recorded(caller, None, action, async move { Ok(volumes.change(&volume.id, &at, change).await?) }).await
    }

    /// Removes something in a volume.
    pub async fn remove_volume_entry(&self, caller: &Caller, which: &str, path: &VolumePath) -> Result<(), CoreError> {
        let volume = self.writable_volume(caller, which).await?;
        let (action, volumes, at) = (file("remove", &volume, path, None), Arc::clone(&self.shared.volumes), path.clone());
        self.recorded(caller, None, action, async move { Ok(volumes.remove_entry(&volume.id, &at).await?) }).await
    }

    /// Moves something within a volume.
    pub async fn move_volume_entry(
        &self,
        caller: &Caller,
        which: &str,
        from: &VolumePath,
        to: &VolumePath,
    ) -> Result<VolumeEntry, CoreError> {
        let volume = self.writable_volume(caller, which).await?;
        let (action, volumes) = (file("rename", &volume, from, Some(to)), Arc::clone(&self.shared.volumes));
        let (from, to) = (from.clone(), to.clone());
        self.recorded(caller, None, action, async move { Ok(volumes.rename(&volume.id, &from, &to).await?) }).await
    }

    async fn writable_volume(&self, caller: &Caller, which: &str) -> Result<Volume, CoreError> {
        caller.require(Scope::Use)?;
        let volume = self.find_volume(caller, which).await?;
        if volume.read_only {
            return Err(belljar_ports::VolumeError::ReadOnly { id: volume.id }.into());
        }
        Ok(volume)
    }
}
