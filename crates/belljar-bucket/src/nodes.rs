//! Which inode is which key. The kernel names files by number between `lookup` and `forget`; a bucket knows names only.

use std::collections::HashMap;

use fuser::{Errno, INodeNo};
use object_store::path::{Path, PathPart};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) path: Path,
    pub(crate) kind: Kind,
    /// How often the kernel was given it and did not give it back.
    lookups: u64,
}

/// Every inode the kernel may still ask about; no more than it holds itself.
#[derive(Debug)]
pub(crate) struct Nodes {
    by_number: HashMap<u64, Node>,
    by_path: HashMap<Path, u64>,
    next: u64,
}

impl Nodes {
    pub(crate) fn new(root: Path) -> Self {
        let first = INodeNo::ROOT.0;
        let node = Node { path: root.clone(), kind: Kind::Directory, lookups: 1 };
        Self { by_number: HashMap::from([(first, node)]), by_path: HashMap::from([(root, first)]), next: first + 1 }
    }

    pub(crate) fn get(&self, number: INodeNo) -> Result<Node, Errno> {
        self.by_number.get(&number.0).cloned().ok_or(Errno::ESTALE)
    }

    pub(crate) fn number(&self, path: &Path) -> Option<INodeNo> {
        self.by_path.get(path).map(|number| INodeNo(*number))
    }

    /// The number of what is at a path, which the kernel is now given once more. What was a file and is a directory now is another inode.
    pub(crate) fn remember(&mut self, path: &Path, kind: Kind) -> INodeNo {
        if let Some(number) = self.by_path.get(path).copied()
            && let Some(node) = self.by_number.get_mut(&number).filter(|node| node.kind == kind)
        {
            node.lookups += 1;
            return INodeNo(number);
        }
        let number = self.next;
        self.next += 1;
        self.by_number.insert(number, Node { path: path.clone(), kind, lookups: 1 });
        self.by_path.insert(path.clone(), number);
        INodeNo(number)
    }

    pub(crate) fn forget(&mut self, number: INodeNo, lookups: u64) {
        if number == INodeNo::ROOT {
            return;
        }
        let Some(node) = self.by_number.get_mut(&number.0) else { return };
        node.lookups = node.lookups.saturating_sub(lookups);
        if node.lookups == 0 {
            let path = node.path.clone();
            self.by_number.remove(&number.0);
            if self.by_path.get(&path) == Some(&number.0) {
                self.by_path.remove(&path);
            }
        }
    }

    /// What was called one thing is called another; what had that name has none.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) {
        let Some(number) = self.by_path.remove(from) else { return };
        if let Some(node) = self.by_number.get_mut(&number) {
            node.path = to.clone();
        }
        self.by_path.insert(to.clone(), number);
    }

    /// The files of a directory that fit.
    pub(crate) fn files_in(&self, directory: &Path, fits: impl Fn(INodeNo) -> bool) -> Vec<(Path, Kind)> {
        let here = |path: &Path| path.parent().unwrap_or_default() == *directory;
        let found = self.by_path.iter().filter(|(path, number)| here(path) && fits(INodeNo(**number)));
        found.map(|(path, _)| (path.clone(), Kind::File)).collect()
    }

    /// A name that nothing has any more; whoever has it open keeps its number.
    pub(crate) fn unname(&mut self, path: &Path) {
        self.by_path.remove(path);
    }
}

/// The key of a name in a directory. A name that the store would have to write differently is refused: it could not be found again.
pub(crate) fn child(directory: &Path, name: &std::ffi::OsStr) -> Result<Path, Errno> {
    let name = name.to_str().ok_or(Errno::EILSEQ)?;
    if name.len() > 255 {
        return Err(Errno::ENAMETOOLONG);
    }
    if name.is_empty() {
        return Err(Errno::ENOENT);
    }
    let part = PathPart::parse(name).map_err(|_| Errno::EILSEQ)?;
    Ok(directory.clone().join(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_lasts_as_long_as_the_kernel_holds_it() {
        let mut nodes = Nodes::new(Path::from("data"));
        assert_eq!(nodes.get(INodeNo::ROOT).unwrap().path, Path::from("data"));
        let path = Path::from("data/a");
        let number = nodes.remember(&path, Kind::File);
        assert_eq!(nodes.remember(&path, Kind::File), number);
        nodes.forget(number, 1);
        assert_eq!(nodes.number(&path), Some(number));
        nodes.forget(number, 1);
        assert!(nodes.get(number).is_err() && nodes.number(&path).is_none());
        nodes.forget(INodeNo::ROOT, 100);
        assert!(nodes.get(INodeNo::ROOT).is_ok());
    }

    #[test]
    fn a_name_moves_with_its_number_and_a_new_thing_gets_a_new_one() {
        let mut nodes = Nodes::new(Path::default());
        let (old, new) = (Path::from("old"), Path::from("new"));
        let number = nodes.remember(&old, Kind::File);
        let replaced = nodes.remember(&new, Kind::File);
        nodes.rename(&old, &new);
        assert_eq!((nodes.number(&new), nodes.number(&old)), (Some(number), None));
        nodes.forget(replaced, 1);
        assert_eq!(nodes.number(&new), Some(number), "what had the name before does not take it away");
        assert_ne!(nodes.remember(&new, Kind::Directory), number);
    }

    #[test]
    fn a_name_is_one_part_of_a_key_and_stays_as_it_is() {
        let directory = Path::from("a/b");
        assert_eq!(child(&directory, "c d".as_ref()).unwrap().as_ref(), "a/b/c d");
        for bad in ["..", ".", "x/y", "", &"n".repeat(256)] {
            assert!(child(&directory, bad.as_ref()).is_err(), "{bad:?}");
        }
    }
}
