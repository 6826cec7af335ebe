//! The account files of an image, completed so that `root` and `user` exist.
//!
//! What is there stays as it is, line by line; lines are only added. If an image has an account with uid 1000 under another name (`node`,
//! `ubuntu`), `user` becomes a second name for it, with its group, home and shell: files that belong to that account then belong to `user`, and
//! look-ups by number still find the image's own name first.

/// The uid of the user that processes run as unless told otherwise.
const USER_ID: u32 = 1000;

/// An account of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) home: String,
    shell: String,
}

/// The account files as text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct AccountFiles {
    pub(super) passwd: Vec<u8>,
    pub(super) group: Vec<u8>,
    /// `None` where the image has none: accounts then simply have no password.
    pub(super) shadow: Option<Vec<u8>>,
    pub(super) gshadow: Option<Vec<u8>>,
}

impl AccountFiles {
    /// The accounts, first line first; lines that make no sense are passed over, as the C library does.
    pub(super) fn accounts(&self) -> impl Iterator<Item = Account> + '_ {
        lines(&self.passwd).filter_map(|fields| {
            let [name, _, uid, gid, _, home, shell] = fields.as_slice() else { return None };
            let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
            Some(Account { name: name.clone(), uid, gid, home: home.clone(), shell: shell.clone() })
        })
    }

    /// The account of this name.
    pub(super) fn by_name(&self, name: &str) -> Option<Account> {
        self.accounts().find(|account| account.name == name)
    }

    /// The first account with this number.
    pub(super) fn by_uid(&self, uid: u32) -> Option<Account> {
        self.accounts().find(|account| account.uid == uid)
    }

    /// Adds `root` and `user` where they are missing.
    pub(super) fn complete(&mut self, shell: &str) {
        if self.by_name("root").is_none() {
            self.add(&Account { name: "root".into(), uid: 0, gid: 0, home: "/root".into(), shell: shell.into() });
        }
        if self.by_name("user").is_some() {
            return;
        }
        let account = match self.by_uid(USER_ID) {
            Some(other) => Account { name: "user".into(), ..other },
            None => Account { name: "user".into(), uid: USER_ID, gid: USER_ID, home: "/home/user".into(), shell: shell.into() },
        };
        self.add(&account);
    }

    /// Gives a bare number a name, since a sandbox runs processes by name; its home is the root, as with other engines.
    pub(super) fn name_for_uid(&mut self, uid: u32, gid: u32, shell: &str) -> String {
        if let Some(account) = self.by_uid(uid) {
            return account.name;
        }
        let name = format!("u{uid}");
        self.add(&Account { name: name.clone(), uid, gid, home: "/".into(), shell: shell.into() });
        name
    }

    fn add(&mut self, account: &Account) {
        let Account { name, uid, gid, home, shell } = account;
        append(&mut self.passwd, &format!("{name}:x:{uid}:{gid}::{home}:{shell}"));
        let has_group = |field: usize, value: &str| lines(&self.group).any(|fields| fields.get(field).is_some_and(|f| f == value));
        if !has_group(2, &gid.to_string()) && !has_group(0, name) {
            append(&mut self.group, &format!("{name}:x:{gid}:"));
            if let Some(gshadow) = &mut self.gshadow {
                append(gshadow, &format!("{name}:!::"));
            }
        }
        if let Some(shadow) = &mut self.shadow
            && !lines(shadow).any(|fields| fields.first() == Some(name))
        {
            append(shadow, &format!("{name}:*:19000:0:99999:7:::"));
        }
    }
}

fn lines(file: &[u8]) -> impl Iterator<Item = Vec<String>> + '_ {
    let lines = file.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| line.split(|b| *b == b':').map(|field| String::from_utf8_lossy(field).into_owned()).collect())
}

fn append(file: &mut Vec<u8>, line: &str) {
    if file.last().is_some_and(|last| *last != b'\n') {
        file.push(b'\n');
    }
    file.extend_from_slice(line.as_bytes());
    file.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(passwd: &str, group: &str) -> (String, String) {
        let mut files = AccountFiles { passwd: passwd.into(), group: group.into(), shadow: Some(Vec::new()), gshadow: None };
        files.complete("/bin/sh");
        (String::from_utf8(files.passwd).unwrap(), String::from_utf8(files.group).unwrap())
    }

    #[test]
    fn an_empty_image_gets_both() {
        let (passwd, group) = completed("", "");
        assert_eq!(passwd, "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n");
        assert_eq!(group, "root:x:0:\nuser:x:1000:\n");
    }

    #[test]
    fn an_account_with_uid_1000_gets_a_second_name() {
        let (passwd, group) =
            completed("root:x:0:0:root:/root:/bin/bash\nnode:x:1000:1000::/home/node:/bin/bash", "root:x:0:\nnode:x:1000:");
        assert!(passwd.ends_with("node:x:1000:1000::/home/node:/bin/bash\nuser:x:1000:1000::/home/node:/bin/bash\n"), "{passwd}");
        assert_eq!(group, "root:x:0:\nnode:x:1000:");
    }

    #[test]
    fn the_images_own_user_stays() {
        let own = "root:x:0:0:root:/root:/bin/bash\nuser:x:500:500::/srv:/bin/zsh\n";
        assert_eq!(completed(own, "").0, own);
    }

    #[test]
    fn nonsense_lines_are_passed_over_and_kept() {
        let (passwd, _) = completed("user\nuser:x:nan:0::/:/bin/sh\n+::::::\n", "");
        assert!(passwd.starts_with("user\nuser:x:nan:0::/:/bin/sh\n+::::::\nroot:x:0:0"), "{passwd}");
        assert!(passwd.ends_with("user:x:1000:1000::/home/user:/bin/sh\n"), "{passwd}");
    }

    #[test]
    fn a_bare_number_gets_a_name_once() {
        let mut files = AccountFiles::default();
        assert_eq!(files.name_for_uid(4242, 7, "/bin/sh"), "u4242");
        assert_eq!(files.name_for_uid(4242, 7, "/bin/sh"), "u4242");
        assert_eq!(files.accounts().count(), 1);
        assert_eq!(files.group, b"u4242:x:7:\n");
    }
}
