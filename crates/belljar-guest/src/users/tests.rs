//! Files as they are found in images, and as a hostile program would leave them.

use super::*;

fn users() -> Users {
    Users {
        passwd: b"root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1001::/home/user:/bin/zsh\nodd:x:7\nno:home:8:8\n:x:9:9::/:\n\xff\xfe:x:1:1::/:\n".to_vec(),
        group: b"root:x:0:\nuser:x:1001:user\nsudo:x:27:other,user\ndocker:x:999:other\ntwice:x:27:user\nbad\n".to_vec(),
    }
}

#[test]
fn a_user_has_home_shell_and_groups() {
    let user = users().find("user").unwrap();
    assert_eq!((user.uid, user.gid, user.groups.as_slice()), (1000, 1001, &[27][..]));
    assert_eq!((user.home.as_slice(), user.shell.as_slice()), (&b"/home/user"[..], &b"/bin/zsh"[..]));
    assert_eq!(users().group_name(27).as_deref(), Some("sudo"));
}

#[test]
fn numbers_are_users_too() {
    assert_eq!(users().find("1000").unwrap().name, "user");
    assert_eq!(users().find("4242").unwrap().uid, 4242);
    assert_eq!(users().find("nobody"), None);
    assert_eq!(users().find("odd"), None);
    assert_eq!(users().find("no").unwrap().home, b"/");
}

#[test]
fn root_is_refused_by_policy_under_any_name() {
    let policy = UserPolicy { default: None, privilege: PrivilegePolicy::UserOnly };
    for name in ["root", "0"] {
        let refused = policy.resolve(&users(), Some(&name.parse().unwrap())).unwrap_err();
        assert!(refused.message.contains("user-only"), "{refused:?}");
    }
    assert_eq!(policy.resolve(&users(), None).unwrap().uid, 1000);
}

#[test]
fn a_missing_user_is_named() {
    let policy = UserPolicy { default: None, privilege: PrivilegePolicy::RootAllowed };
    assert!(policy.resolve(&users(), Some(&"ghost".parse().unwrap())).unwrap_err().message.contains("no user ghost"));
    assert_eq!(policy.resolve(&Users::default(), None).unwrap().uid, 0, "an image without users has root");
}
