//! A small `/etc`: what the C library, shells and TLS need, and nothing that tells of other users or of the machine's secrets.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::line::{At, Failure, Step};
use crate::plan::{Identity, Network, Plan};

use super::sources;

const COPIED: [&str; 16] = [
    "ld.so.cache",
    "ld.so.conf",
    "ssl/openssl.cnf",
    "localtime",
    "timezone",
    "protocols",
    "services",
    "host.conf",
    "gai.conf",
    "os-release",
    "debian_version",
    "inputrc",
    "bash.bashrc",
    "profile",
    "shells",
    "login.defs",
];
const SHOWN: [&str; 6] = ["alternatives", "ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted", "crypto-policies", "fonts"];
/// Larger ones are none of those we know.
const LARGEST: u64 = 4 << 20;

const NAME_SERVICES: &str = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n";

/// What goes to `/etc`.
#[derive(Debug, Default)]
pub(super) struct Etc {
    files: Vec<(PathBuf, Vec<u8>)>,
    links: Vec<(PathBuf, OsString)>,
    mounts: Vec<(OwnedFd, PathBuf)>,
}

/// Takes it from the host, and makes the rest.
pub(super) fn gather(plan: &Plan) -> Result<Etc, Failure> {
    let mut etc = Etc::default();
    let resolver: &[&str] = if plan.network == Network::Host { &["resolv.conf"] } else { &[] };
    for name in COPIED.iter().chain(resolver).map(Path::new) {
        let path = Path::new("/etc").join(name);
        // A link into the programs leads there inside too; any other is read through.
        match fs::read_link(&path).ok().filter(|target| target.starts_with("/usr") || target.starts_with("../usr")) {
            Some(target) => etc.links.push((path, target.into())),
            None if fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= LARGEST) => {
                let text = fs::read(&path).at(Step::Read, &path)?;
                etc.files.push((path, text));
            }
            None => {}
        }
    }
    for name in SHOWN {
        let path = Path::new("/etc").join(name);
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            etc.mounts.push((sources::sealed(&path)?, path));
        }
    }
    let (passwd, group) = users(plan);
    let hosts = "127.0.0.1 localhost belljar\n::1 localhost\n";
    for (name, text) in
        [("passwd", &*passwd), ("group", &group), ("hosts", hosts), ("hostname", "belljar\n"), ("nsswitch.conf", NAME_SERVICES)]
    {
        etc.files.push((Path::new("/etc").join(name), text.into()));
    }
    Ok(etc)
}

/// This user, root and nobody.
fn users(plan: &Plan) -> (String, String) {
    let home = plan.home.to_string_lossy().replace([':', '\n'], "_");
    let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
    let mut passwd = format!("nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\nroot:x:0:0:root:/root:{shell}\n");
    let mut group = "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n".to_owned();
    if let Identity::Caller { uid, gid } = plan.identity {
        let named = plan.environment.iter().find(|(name, _)| name == "USER").and_then(|(_, value)| value.to_str());
        let plain = |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        let name = named.filter(plain).filter(|name| !["root", "nobody"].contains(name)).unwrap_or("guarded");
        if uid != 0 && uid != 65534 {
            passwd.push_str(&format!("{name}:x:{uid}:{gid}:{name}:{home}:{shell}\n"));
        }
        if ![0, 5, 65534].contains(&gid) {
            group.push_str(&format!("{name}:x:{gid}:\n"));
        }
    }
    (passwd, group)
}

impl Etc {
    /// Writes and attaches it; the root is writable still.
    pub(super) fn put(self) -> Result<(), Failure> {
        let parents = |path: &Path| path.parent().map_or(Ok(()), |parent| fs::create_dir_all(parent).at(Step::MakeDirectory, parent));
        for (path, text) in self.files {
            parents(&path)?;
            fs::write(&path, text).at(Step::Write, &path)?;
        }
        for (path, target) in self.links {
            parents(&path)?;
            std::os::unix::fs::symlink(target, &path).at(Step::Write, &path)?;
        }
        for (mount, path) in self.mounts {
            super::root::attach_directory(&mount, &path)?;
        }
        Ok(())
    }
}
