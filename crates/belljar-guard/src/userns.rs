//! Why a kernel refuses namespaces, and what the person at the terminal can do about it.

use std::fs;
use std::io;

use rustix::io::Errno;

const UNPRIVILEGED: &str = "/proc/sys/kernel/unprivileged_userns_clone";
const MOST: &str = "/proc/sys/user/max_user_namespaces";
const APPARMOR: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

fn holds(file: &str, value: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.trim() == value)
}

/// What to do when namespaces were refused with this error.
pub(crate) fn advice(error: &io::Error) -> String {
    let apparmor = "AppArmor keeps unprivileged programs from using user namespaces; give this program a profile with `userns,`, \
                    or set kernel.apparmor_restrict_unprivileged_userns=0, or run it as root";
    if holds(UNPRIVILEGED, "0") {
        return "this kernel lets only root make user namespaces; set kernel.unprivileged_userns_clone=1 (as root: sysctl -w), or run as root".into();
    }
    if holds(MOST, "0") {
        return "user namespaces are switched off; set user.max_user_namespaces to 15000 or so (as root: sysctl -w), and run again".into();
    }
    if holds(APPARMOR, "1") {
        return apparmor.into();
    }
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::USERS) => "there are too many user namespaces; raise user.max_user_namespaces, or end some of what uses them".into(),
        Some(Errno::PERM | Errno::ACCESS) => {
            "something around this process forbids it: a container or another sandbox; run the guard outside of it, or allow it user namespaces and mounts".into()
        }
        Some(Errno::INVAL | Errno::NOSYS) => "this kernel was built without the namespaces that are needed".into(),
        _ => "the kernel refused".into(),
    }
}

/// What to do when a step inside failed, where that is known.
pub(crate) fn advice_inside(step: crate::line::Step, error: &io::Error) -> String {
    use crate::line::Step;
    let refused = matches!(Errno::from_io_error(error), Some(Errno::PERM | Errno::ACCESS));
    match step {
        Step::Processes if refused => {
            "part of /proc is covered here, as in a container, and the kernel then gives nobody a new one; run the guard outside of the container".into()
        }
        Step::Loopback | Step::HostName | Step::MakeRoot | Step::ChangeRoot | Step::Copy if refused => advice(error),
        _ => String::new(),
    }
}
