//! Who is who inside the sandbox, from its own `/etc/passwd` and `/etc/group`.
//!
//! They are looked at each time, since programs inside add users. The files are the sandbox's: lines that make no sense are skipped. The C
//! library's lookup is not used because it loads plug-ins, which a static program must not.

mod known;

use std::io::Read;
use std::sync::Arc;

use belljar_guest_protocol::Failure;
use belljar_linux::child::ChildUser;
use belljar_types::{PrivilegePolicy, UserName};

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";
const LARGEST: u64 = 4 << 20;

/// A user of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) home: Vec<u8>,
    pub(crate) shell: Vec<u8>,
}

impl User {
    pub(crate) fn as_child(&self) -> ChildUser {
        ChildUser { uid: self.uid, gid: self.gid, groups: self.groups.clone() }
    }

    pub(crate) fn type_name(&self) -> UserName {
        self.name.parse().or_else(|_| self.uid.to_string().parse()).expect("digits are a user name")
    }
}

/// Both files, as they were when read.
#[derive(Debug, Default)]
pub(crate) struct Users {
    passwd: Vec<u8>,
    group: Vec<u8>,
}

impl Users {
    /// What both files say now; one that is missing is empty.
    pub(crate) fn read() -> Arc<Self> {
        known::users()
    }

    /// The user with this name, or this number if no name matches.
    pub(crate) fn find(&self, name: &str) -> Option<User> {
        let by_name = self.passwd_lines().find(|user| user.name == name);
        let number = || name.parse::<u32>().ok().filter(|uid| *uid != u32::MAX);
        let by_number = || {
            let uid = number()?;
            self.passwd_lines().find(|user| user.uid == uid)
        };
        let nameless =
            || Some(User { name: name.into(), uid: number()?, gid: 0, groups: Vec::new(), home: b"/".into(), shell: b"/bin/sh".into() });
        let mut user = by_name.or_else(by_number).or_else(nameless)?;
        user.groups = self.group_lines().filter(|group| group.has_member(&user.name)).map(|group| group.gid).collect();
        user.groups.retain(|gid| *gid != user.gid);
        user.groups.sort_unstable();
        user.groups.dedup();
        Some(user)
    }

    pub(crate) fn find_uid(&self, uid: u32) -> Option<User> {
        let name = self.user_name(uid)?;
        self.find(&name)
    }

    pub(crate) fn user_name(&self, uid: u32) -> Option<String> {
        self.passwd_lines().find(|user| user.uid == uid).map(|user| user.name)
    }

    pub(crate) fn group_name(&self, gid: u32) -> Option<String> {
        self.group_lines().find(|group| group.gid == gid).map(|group| String::from_utf8_lossy(group.name).into_owned())
    }

    /// The number of a group given by name or number.
    pub(crate) fn find_group(&self, name: &str) -> Option<u32> {
        self.group_number(name).or_else(|| name.parse().ok())
    }

    /// The number of a group with exactly this name.
    pub(crate) fn group_number(&self, name: &str) -> Option<u32> {
        self.group_lines().find(|group| group.name == name.as_bytes()).map(|group| group.gid)
    }

    fn passwd_lines(&self) -> impl Iterator<Item = User> {
        self.passwd.split(|b| *b == b'\n').filter_map(parse_passwd)
    }

    fn group_lines(&self) -> impl Iterator<Item = Group<'_>> {
        self.group.split(|b| *b == b'\n').filter_map(parse_group)
    }
}

struct Group<'a> {
    name: &'a [u8],
    gid: u32,
    members: &'a [u8],
}

impl Group<'_> {
    fn has_member(&self, name: &str) -> bool {
        self.members.split(|b| *b == b',').any(|member| member == name.as_bytes())
    }
}

fn parse_passwd(line: &[u8]) -> Option<User> {
    let mut fields = line.split(|b| *b == b':');
    let name = std::str::from_utf8(fields.next()?).ok().filter(|name| !name.is_empty())?.to_owned();
    let uid = number(fields.nth(1)?)?;
    let gid = number(fields.next()?)?;
    let home = fields.nth(1).filter(|home| home.first() == Some(&b'/')).unwrap_or(b"/").to_vec();
    let shell = fields.next().filter(|shell| !shell.is_empty()).unwrap_or(b"/bin/sh").to_vec();
    Some(User { name, uid, gid, groups: Vec::new(), home, shell })
}

fn parse_group(line: &[u8]) -> Option<Group<'_>> {
    let mut fields = line.split(|b| *b == b':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let gid = number(fields.nth(1)?)?;
    Some(Group { name, gid, members: fields.next().unwrap_or_default() })
}

fn number(field: &[u8]) -> Option<u32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn read_bounded(path: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        // A part is still better than nothing, and whoever broke the file is inside the sandbox.
        let _ = file.take(LARGEST).read_to_end(&mut bytes);
    }
    bytes
}

/// Who acts when the caller does not say, and whether they may.
#[derive(Debug, Clone)]
pub(crate) struct UserPolicy {
    pub(crate) default: Option<UserName>,
    pub(crate) privilege: PrivilegePolicy,
}

impl UserPolicy {
    /// The user to act as. Without a configured one it is `user`, or root where the sandbox has no such user and root is allowed.
    pub(crate) fn resolve(&self, users: &Users, asked: Option<&UserName>) -> Result<User, Failure> {
        let root_allowed = self.privilege == PrivilegePolicy::RootAllowed;
        let name = asked.or(self.default.as_ref()).map_or(UserName::DEFAULT, UserName::as_str);
        let fallback = || if asked.is_none() && self.default.is_none() && root_allowed { users.find("0") } else { None };
        let missing = || Failure::refused(0, format!("the sandbox has no user {name}: add it to {PASSWD} or name another user"));
        let user = users.find(name).or_else(fallback).ok_or_else(missing)?;
        if user.uid == 0 && !root_allowed {
            return Err(Failure::refused(1, "this sandbox does not allow root: its privilege policy is user-only"));
        }
        Ok(user)
    }
}

#[cfg(test)]
#[path = "users/tests.rs"]
mod tests;
