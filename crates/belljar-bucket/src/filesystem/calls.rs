//! What the kernel asks, and who answers. The thread that reads questions never waits for the bucket: each is answered by a task of its own.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::{BELIEVED, BLOCK, Handle, Server};
use crate::nodes::Kind;

/// Room that is told to programs which ask before they write: a bucket has no end.
const BLOCKS: u64 = 1 << 38;

/// Spawns the answer to one question.
macro_rules! answer {
    ($self:ident, $shared:ident, $work:expr, $reply:ident, |$done:pat_param| $told:expr) => {{
        let $shared = Arc::clone(&$self.shared);
        $self.runtime.spawn(async move {
            match $work.await {
                Ok($done) => $told,
                Err(error) => $reply.error(error),
            }
        });
    }};
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Without it an open that empties a file would come as two questions, and an empty file would be sent before the full one.
        let _old_kernel = config.add_capabilities(InitFlags::FUSE_ATOMIC_O_TRUNC);
        // Sandboxes of the container class have ids of their own; kernels before 6.12 cannot map those here, and such a sandbox is refused.
        let _old_kernel = config.add_capabilities(InitFlags::FUSE_ALLOW_IDMAP);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        answer!(self, shared, shared.store.lookup(parent, &name), reply, |seen| {
            reply.entry(&BELIEVED, &shared.attributes(&seen), Generation(0));
        });
    }

    fn forget(&self, _: &Request, number: INodeNo, lookups: u64) {
        self.shared.store.forget(number, lookups);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        answer!(self, shared, shared.store.attributes(number), reply, |seen| reply.attr(&BELIEVED, &shared.attributes(&seen)));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let work = async move |shared: &super::Shared| {
            if let Some(size) = size {
                shared.store.truncate(number, size).await?;
            }
            let seen = shared.attributes(&shared.store.attributes(number).await?);
            // A bucket keeps neither owners nor modes. Times are those of the bucket, whatever a program asks for; most that ask can live with that.
            let kept = |wanted: Option<u32>, has: u32| wanted.is_none_or(|wanted| wanted == has);
            let as_it_is = kept(mode.map(|mode| mode & 0o7777), u32::from(seen.perm)) && kept(user, seen.uid) && kept(group, seen.gid);
            if as_it_is { Ok(seen) } else { Err(Errno::EPERM) }
        };
        answer!(self, shared, work(&shared), reply, |attributes| reply.attr(&BELIEVED, &attributes));
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        let name = name.to_owned();
        answer!(self, shared, shared.store.make_directory(parent, &name), reply, |seen| {
            reply.entry(&BELIEVED, &shared.attributes(&seen), Generation(0));
        });
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        answer!(self, shared, shared.store.remove(parent, &name), reply, |()| reply.ok());
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        answer!(self, shared, shared.store.remove_directory(parent, &name), reply, |()| reply.ok());
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if flags.contains(RenameFlags::RENAME_EXCHANGE) || flags.contains(RenameFlags::RENAME_WHITEOUT) {
            return reply.error(Errno::EINVAL);
        }
        let store = &self.shared.store;
        let (from, to) = match (store.key(parent, name), store.key(new_parent, new_name)) {
            (Ok(from), Ok(to)) => (from, to),
            (Err(error), _) | (_, Err(error)) => return reply.error(error),
        };
        let replace = !flags.contains(RenameFlags::RENAME_NOREPLACE);
        answer!(self, shared, shared.store.rename(from, to, replace), reply, |()| reply.ok());
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let empties = flags.0 & rustix::fs::OFlags::TRUNC.bits().cast_signed() != 0;
        let work = async move |shared: &super::Shared| match flags.acc_mode() {
            OpenAccMode::O_RDONLY => Ok(shared.opened(Handle::Read(Arc::new(shared.store.open_to_read(number).await?)))),
            OpenAccMode::O_WRONLY | OpenAccMode::O_RDWR => {
                shared.store.open_to_write(number, empties).await?;
                Ok(shared.opened(Handle::Write))
            }
        };
        answer!(self, shared, work(&shared), reply, |handle| reply.opened(handle, FopenFlags::empty()));
    }

    fn create(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, _: i32, reply: ReplyCreate) {
        let name = name.to_owned();
        answer!(self, shared, shared.store.create(parent, &name), reply, |seen| {
            let handle = shared.opened(Handle::Write);
            reply.created(&BELIEVED, &shared.attributes(&seen), Generation(0), handle, FopenFlags::empty());
        });
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let window = match self.shared.handle(handle) {
            Some(Handle::Read(window)) => Some(window),
            Some(Handle::Write) => None,
            Some(Handle::Directory(_)) | None => return reply.error(Errno::EBADF),
        };
        answer!(self, shared, shared.store.read(number, window.as_deref(), offset, size), reply, |bytes| reply.data(&bytes));
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Some(draft) = self.shared.store.drafts.get(number) else { return reply.error(Errno::EBADF) };
        let data = data.to_vec();
        answer!(self, _shared, draft.write(offset, &data), reply, |written| reply.written(written));
    }

    fn flush(&self, _: &Request, number: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Whoever only read does not decide when it is complete.
        if !matches!(self.shared.handle(handle), Some(Handle::Write)) {
            return reply.ok();
        }
        answer!(self, shared, shared.store.send(number), reply, |()| reply.ok());
    }

    fn fsync(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer!(self, shared, shared.store.send(number), reply, |()| reply.ok());
    }

    fn release(&self, _: &Request, number: INodeNo, handle: FileHandle, _: OpenFlags, _: Option<LockOwner>, _: bool, reply: ReplyEmpty) {
        let shared = Arc::clone(&self.shared);
        self.runtime.spawn(async move {
            if let (Some(Handle::Write), Some(draft)) = (shared.closed(handle), shared.store.drafts.get(number)) {
                // Nobody hears of a failure here; whoever closed the file did, unless it was written through a mapping.
                let _told_in_the_log = shared.store.send(number).await;
                shared.store.drafts.leave(number, &draft).await;
            }
            reply.ok();
        });
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let work = async move |shared: &super::Shared| {
            let directory = shared.store.node(number)?.path;
            Ok(shared.opened(Handle::Directory(Arc::new(shared.store.list(&directory).await?))))
        };
        answer!(self, shared, work(&shared), reply, |handle| reply.opened(handle, FopenFlags::empty()));
    }

    fn readdir(&self, _: &Request, number: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let Some(Handle::Directory(entries)) = self.shared.handle(handle) else { return reply.error(Errno::EBADF) };
        let special = [(".", Kind::Directory), ("..", Kind::Directory)];
        let all = special.into_iter().chain(entries.iter().map(|entry| (entry.name.as_str(), entry.kind)));
        for (at, (name, kind)) in (1..).zip(all).skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
            let kind = if kind == Kind::Directory { FileType::Directory } else { FileType::RegularFile };
            // The number of an entry is not known before somebody looks it up, and nobody may rely on it.
            if reply.add(number, at, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.shared.closed(handle);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, 0, 0, BLOCK, 255, BLOCK);
    }
}
