//! Lends a thread the identity of a user. Other threads keep theirs: the plain system calls change only the one that makes them, unlike the C
//! library's functions of the same names.

use belljar_guest_protocol::Failure;
use rustix::process::{Gid, Uid, geteuid, getgroups};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::users::User;

/// An identity that is given back when dropped.
pub(super) struct Borrowed {
    /// The groups the thread had; nothing was changed when unset.
    before: Option<Vec<Gid>>,
}

impl Borrowed {
    pub(super) fn take(user: &User) -> Result<Self, Failure> {
        let unchanged = user.uid == geteuid().as_raw() && (user.uid != 0 || user.gid == 0 && user.groups.is_empty());
        if unchanged {
            return Ok(Self { before: None });
        }
        let failed =
            |errno: rustix::io::Errno| Failure::refused(errno.raw_os_error(), format!("could not act as user {}: {errno}", user.name));
        let before = getgroups().map_err(failed)?;
        let groups: Vec<Gid> = user.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        let borrowed = Self { before: Some(before) };
        // The user last: after that the thread may not change the rest.
        set_thread_groups(&groups).map_err(failed)?;
        set_thread_res_gid(None, Gid::from_raw(user.gid), None).map_err(failed)?;
        set_thread_res_uid(None, Uid::from_raw(user.uid), None).map_err(failed)?;
        Ok(borrowed)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let Some(groups) = &self.before else { return };
        let restored = set_thread_res_uid(None, Uid::ROOT, None)
            .and_then(|()| set_thread_res_gid(None, Gid::ROOT, None))
            .and_then(|()| set_thread_groups(groups));
        if restored.is_err() {
            // A thread that keeps a user's identity would act wrongly for the next caller; no agent is better than that one.
            std::process::abort();
        }
    }
}
