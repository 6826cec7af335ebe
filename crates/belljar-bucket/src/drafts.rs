//! Files that are being written. An object cannot be changed, only replaced, so what a program writes is kept in an unnamed file on the host's disk
//! and becomes the object when the program closes or syncs it. Whoever reads meanwhile through the same mount reads the draft.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fuser::{Errno, INodeNo};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard, OnceCell};

use crate::error::{errno, on_disk};

/// How much of a draft is in memory while it is sent. S3 wants parts of at least 5 MiB, and at most 10,000 of them.
const PART: u64 = 8 << 20;
const PARTS_MAX: u64 = 10_000;

/// All files of a mount that are being written, and the room they have.
#[derive(Debug)]
pub(crate) struct Drafts {
    directory: PathBuf,
    room: Arc<Room>,
    open: Mutex<HashMap<u64, Arc<Draft>>>,
}

#[derive(Debug)]
struct Room {
    most: u64,
    used: AtomicU64,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Draft {
    file: File,
    room: Arc<Room>,
    /// Set when it holds what it is to begin with; until then nobody sees it.
    filled: OnceCell<()>,
    state: AsyncMutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) size: u64,
    /// The bucket does not have this yet.
    pub(crate) dirty: bool,
    /// Its name was taken away: it is never sent.
    pub(crate) gone: bool,
    /// How many have it open for writing.
    writers: u32,
}

impl Drafts {
    pub(crate) fn new(directory: PathBuf, most: u64) -> Self {
        Self { directory, room: Arc::new(Room { most, used: AtomicU64::new(0) }), open: Mutex::default() }
    }

    /// The draft of a file, if somebody writes it.
    pub(crate) fn get(&self, number: INodeNo) -> Option<Arc<Draft>> {
        self.open().get(&number.0).filter(|draft| draft.filled.initialized()).cloned()
    }

    /// The draft of a file with one writer more. If it is a new one it begins with what `fill` writes into it.
    pub(crate) async fn enter(&self, number: INodeNo, fill: impl AsyncFnOnce(&Draft) -> Result<(), Errno>) -> Result<Arc<Draft>, Errno> {
        let draft = {
            let mut open = self.open();
            if let Some(draft) = open.get(&number.0) {
                Arc::clone(draft)
            } else {
                let file = tempfile::tempfile_in(&self.directory).map_err(|error| on_disk("make a draft", &error))?;
                let state = AsyncMutex::new(State { size: 0, dirty: false, gone: false, writers: 0 });
                let draft = Arc::new(Draft { file, room: Arc::clone(&self.room), filled: OnceCell::new(), state });
                open.insert(number.0, Arc::clone(&draft));
                draft
            }
        };
        draft.state().await.writers += 1;
        let filled = draft.filled.get_or_try_init(async || fill(&draft).await).await.map(drop);
        if filled.is_err() {
            draft.state().await.dirty = false;
            self.leave(number, &draft).await;
        }
        filled.map(|()| draft)
    }

    /// One writer less. The last one's leave ends the draft, unless the bucket still lacks it.
    pub(crate) async fn leave(&self, number: INodeNo, draft: &Arc<Draft>) {
        let mut state = draft.state().await;
        state.writers = state.writers.saturating_sub(1);
        if state.writers == 0 {
            if state.dirty && !state.gone {
                tracing::error!(bytes = state.size, "what was written to a bucket's file was closed and could not be sent; it is lost");
            }
            self.open().remove(&number.0);
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<Draft>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Draft {
    pub(crate) async fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().await
    }

    pub(crate) async fn read(&self, offset: u64, length: u32) -> Result<Bytes, Errno> {
        let size = self.state().await.size;
        let length = u64::from(length).min(size.saturating_sub(offset));
        self.piece(offset, length)
    }

    pub(crate) async fn write(&self, offset: u64, bytes: &[u8]) -> Result<u32, Errno> {
        let length = u32::try_from(bytes.len()).map_err(|_| Errno::EINVAL)?;
        let end = offset.checked_add(u64::from(length)).ok_or(Errno::EFBIG)?;
        let mut state = self.state().await;
        if end > state.size {
            self.room.take(end - state.size)?;
            state.size = end;
        }
        state.dirty = true;
        self.file.write_all_at(bytes, offset).map_err(|error| on_disk("write a draft", &error))?;
        Ok(length)
    }

    pub(crate) async fn truncate(&self, size: u64) -> Result<(), Errno> {
        let mut state = self.state().await;
        if size > state.size {
            self.room.take(size - state.size)?;
        }
        self.file.set_len(size).map_err(|error| on_disk("cut a draft", &error))?;
        if size < state.size {
            self.room.give_back(state.size - size);
        }
        state.size = size;
        state.dirty = true;
        Ok(())
    }

    /// Makes it the object, if the bucket does not have it yet. Nobody writes meanwhile.
    pub(crate) async fn send(&self, store: &dyn ObjectStore, path: &Path) -> Result<(), Errno> {
        let mut state = self.state().await;
        if !state.dirty || state.gone {
            return Ok(());
        }
        if state.size <= PART {
            let whole = PutPayload::from(self.piece(0, state.size)?);
            store.put(path, whole).await.map_err(|error| errno("put", path, &error))?;
        } else {
            let mut upload = store.put_multipart(path).await.map_err(|error| errno("begin to put", path, &error))?;
            if let Err(error) = self.send_parts(upload.as_mut(), path, state.size).await {
                // What was sent is of no use to anybody; if this fails too, the store's own rules sweep it.
                let _ = upload.abort().await;
                return Err(error);
            }
        }
        state.dirty = false;
        Ok(())
    }

    async fn send_parts(&self, upload: &mut dyn MultipartUpload, path: &Path, size: u64) -> Result<(), Errno> {
        let part = PART.max(size.div_ceil(PARTS_MAX));
        let mut offset = 0;
        while offset < size {
            let length = part.min(size - offset);
            let sent = upload.put_part(PutPayload::from(self.piece(offset, length)?)).await;
            sent.map_err(|error| errno("put a part of", path, &error))?;
            offset += length;
        }
        upload.complete().await.map_err(|error| errno("end to put", path, &error))?;
        Ok(())
    }

    fn piece(&self, offset: u64, length: u64) -> Result<Bytes, Errno> {
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Errno::EFBIG)?];
        self.file.read_exact_at(&mut bytes, offset).map_err(|error| on_disk("read a draft", &error))?;
        Ok(bytes.into())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.room.give_back(self.state.get_mut().size);
    }
}

impl Room {
    fn take(&self, bytes: u64) -> Result<(), Errno> {
        let grow = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.most);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).map(drop).map_err(|_| Errno::ENOSPC)
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
