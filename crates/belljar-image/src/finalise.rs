//! The layer that makes a stranger's image fit to run: accounts, homes and mount points that a sandbox counts on.
//!
//! It lies above the image's own layers and changes none of them. The image's own entries win; only what is missing is added. Since a
//! directory in an upper layer decides the attributes of the merged one, each directory that has to be repeated here gets the
//! attributes it has below.

mod accounts;
mod implied;

use std::collections::BTreeMap;
use std::io;

use belljar_types::{Invalid, LayerDigest, TemplateDefaults, UserName};

use self::accounts::{Account, AccountFiles};
use crate::archive::tree::Tree;
use crate::merged::{MergedView, PlaceKind};
use crate::plant::{self, Owned};
use crate::{ImageError, LayerInfo, LayerStore, MOUNT_POINTS, StoreError};

/// No honest account file is larger.
const ACCOUNT_FILE_MAX: u64 = 4 << 20;
const ORIGIN: &str = "accounts and mount points";

/// What an image says about how its processes run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ImageWishes {
    pub(crate) env: BTreeMap<String, String>,
    /// `name`, `uid`, `name:group` or `uid:gid`.
    pub(crate) user: Option<String>,
    pub(crate) workdir: Option<String>,
}

impl LayerStore {
    /// Makes the layer that completes these (lowest first) and says which defaults result.
    pub(crate) fn finalise(&self, layers: &[LayerDigest], wishes: ImageWishes) -> Result<(LayerInfo, TemplateDefaults), ImageError> {
        let failed = |source| ImageError::Finalise { source };
        let open = |digest: &LayerDigest| Tree::open(&self.layer_directory(digest));
        let trees = layers.iter().map(open).collect::<io::Result<Vec<_>>>();
        let view = MergedView::new(trees.map_err(|source| StoreError::Open { path: self.pool().to_owned(), source })?);
        let mut files = read_accounts(&view).map_err(failed)?;
        let shell = if exists(&view, b"bin/bash").map_err(failed)? { "/bin/bash" } else { "/bin/sh" };
        files.complete(shell);
        let user = wishes.user.as_deref().map(|user| choose_user(user, &mut files, shell)).transpose()?;
        let owner = user.as_ref().map_or(UserName::DEFAULT, UserName::as_str);
        let owner = files.by_name(owner).ok_or_else(|| Invalid::new("user", "an account of the image", owner))?;
        let restored = self.restored_directories(layers, &view)?;
        let info = self.make_layer(ORIGIN, |tree, _| {
            let mut planter = Planter { view: &view, restored, tree };
            planter.restored().map_err(failed)?;
            planter.accounts(&files).map_err(failed)?;
            planter.places(&files, &owner, wishes.workdir.as_deref()).map_err(failed)
        })?;
        Ok((info, TemplateDefaults { env: wishes.env, user, workdir: wishes.workdir, start: None }))
    }
}

fn read_accounts(view: &MergedView) -> io::Result<AccountFiles> {
    let read = |path: &[u8]| view.read(path, ACCOUNT_FILE_MAX);
    Ok(AccountFiles {
        passwd: read(b"etc/passwd")?.unwrap_or_default(),
        group: read(b"etc/group")?.unwrap_or_default(),
        shadow: read(b"etc/shadow")?,
        gshadow: read(b"etc/gshadow")?,
    })
}

fn exists(view: &MergedView, path: &[u8]) -> io::Result<bool> {
    Ok(!matches!(view.resolve(path)?.kind, PlaceKind::Nothing))
}

/// The account that an image asks for. A group after a colon has no counterpart here: an account's own groups count.
fn choose_user(wish: &str, files: &mut AccountFiles, shell: &str) -> Result<UserName, Invalid> {
    let (user, group) = wish.split_once(':').unwrap_or((wish, ""));
    let name = match user.parse::<u32>() {
        Ok(uid) if uid <= 65_535 => files.name_for_uid(uid, group.parse().ok().filter(|gid| *gid <= 65_535).unwrap_or(0), shell),
        Ok(_) => return Err(Invalid::new("user", "a uid of 0 to 65535", wish)),
        Err(_) => files.by_name(user).ok_or_else(|| Invalid::new("user", "an account of the image or a number", wish))?.name,
    };
    name.parse()
}

struct Planter<'a> {
    view: &'a MergedView,
    /// Directories that upper layers imply, with the attributes that lower ones give them.
    restored: BTreeMap<Vec<u8>, Owned>,
    tree: Tree,
}

impl Planter<'_> {
    fn restored(&mut self) -> io::Result<()> {
        for (path, owned) in self.restored.clone() {
            self.parents(&path)?;
            plant::directory(&mut self.tree, &path, owned)?;
        }
        Ok(())
    }

    fn accounts(&mut self, files: &AccountFiles) -> io::Result<()> {
        self.replace(b"etc/passwd", &files.passwd, 0o644)?;
        self.replace(b"etc/group", &files.group, 0o644)?;
        for (path, content) in [(&b"etc/shadow"[..], &files.shadow), (b"etc/gshadow", &files.gshadow)] {
            if let Some(content) = content {
                self.replace(path, content, 0o640)?;
            }
        }
        Ok(())
    }

    fn places(&mut self, files: &AccountFiles, owner: &Account, workdir: Option<&str>) -> io::Result<()> {
        for (path, mode) in MOUNT_POINTS {
            self.directory_if_missing(path.as_bytes(), Owned::root(mode))?;
        }
        self.directory_if_missing(b"root", Owned::root(0o700))?;
        if let Some(user) = files.by_name(UserName::DEFAULT) {
            self.directory_if_missing(user.home.as_bytes(), Owned { mode: 0o755, uid: user.uid, gid: user.gid })?;
        }
        if let Some(workdir) = workdir {
            self.directory_if_missing(workdir.as_bytes(), Owned { mode: 0o755, uid: owner.uid, gid: owner.gid })?;
        }
        // Other engines mount these over whatever the image has; here they are plain files from the start.
        self.file_if_missing(b"etc/resolv.conf", b"")?;
        self.file_if_missing(b"etc/hosts", b"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
    }

    fn replace(&mut self, path: &[u8], content: &[u8], mode: u32) -> io::Result<()> {
        let place = self.view.resolve(path)?;
        let owned = match &place.kind {
            PlaceKind::File(file) => attributes(&rustix::fs::fstat(file)?),
            PlaceKind::Nothing => Owned::root(mode),
            PlaceKind::Directory(_) | PlaceKind::Else => return Err(io::ErrorKind::InvalidData.into()),
        };
        self.parents(&place.path)?;
        plant::file(&mut self.tree, &place.path, &mut &*content, owned)
    }

    fn file_if_missing(&mut self, path: &[u8], content: &[u8]) -> io::Result<()> {
        match self.view.resolve(path)?.kind {
            PlaceKind::Nothing => self.replace(path, content, 0o644),
            _ => Ok(()),
        }
    }

    fn directory_if_missing(&mut self, path: &[u8], owned: Owned) -> io::Result<()> {
        let place = self.view.resolve(path)?;
        match place.kind {
            PlaceKind::Directory(_) => Ok(()),
            PlaceKind::Nothing => {
                self.parents(&place.path)?;
                plant::directory(&mut self.tree, &place.path, owned)
            }
            PlaceKind::File(_) | PlaceKind::Else => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Repeats the directories above `path` with the attributes they have below.
    fn parents(&mut self, path: &[u8]) -> io::Result<()> {
        for (at, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
            let owned = match (self.restored.get(&path[..at]), self.view.resolve(&path[..at])?.kind) {
                (Some(owned), _) => *owned,
                (None, PlaceKind::Directory(stat)) => attributes(&stat),
                (None, _) => Owned::root(0o755),
            };
            plant::directory(&mut self.tree, &path[..at], owned)?;
        }
        Ok(())
    }
}

fn attributes(stat: &rustix::fs::Stat) -> Owned {
    Owned { mode: stat.st_mode & 0o7777, uid: stat.st_uid, gid: stat.st_gid }
}
