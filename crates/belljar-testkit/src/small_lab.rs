//! A second laboratory with a small pool of its own, beside the first: a disk that a test may fill to the last block.
//!
//! Its template has a shell and a few programs of the first one's, so that it is made in a second.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use belljar_host::HostConfig;
use belljar_image::{ImageError, LayerStore, Silent};
use belljar_ports::Volumes;
use belljar_types::Template;

use crate::ballast::{Ballast, run};
use crate::lab::{Lab, LabError, agent};

const PROGRAMS: [&str; 13] = ["bash", "dash", "sh", "cat", "sleep", "mkdir", "seq", "head", "dd", "sync", "true", "rm", "touch"];
const LIBRARIES: [&str; 2] = ["libc.so.6", "libtinfo.so.6"];

/// A small pool, and what fills it.
pub struct SmallLab {
    /// The laboratory on it.
    pub lab: Lab,
    /// What fills its pool.
    pub ballast: Ballast,
}

impl SmallLab {
    /// Makes it anew beside the first laboratory, which lends the files of its template.
    pub async fn open(beside: &Lab, pool_bytes: u64) -> Result<Self, LabError> {
        // What is counted of the first one is found by its path, which this one's must not begin with.
        let mut name = std::ffi::OsString::from("small-");
        name.push(beside.data_dir.file_name().unwrap_or_default());
        let data_dir = beside.data_dir.with_file_name(name);
        let store = LayerStore::open(beside.host.pool_directory()).map_err(ImageError::from)?;
        let files = beside.template.layers.iter().map(|layer| store.layer_directory(layer)).collect::<Vec<_>>();
        let defaults = beside.template.defaults.clone();
        let config = HostConfig { pool_bytes, closed_slots: 4, ..HostConfig::new(&data_dir) };
        let make = move |store: &LayerStore| {
            let scratch = tempfile::tempdir().expect("a temporary directory can be made");
            let archive = small_root(&files, scratch.path(), &[]).expect("a few files can be packed");
            let template = store.import_archive("small".parse().expect("a name"), &archive, &Silent)?;
            let template = Template { defaults, ..template };
            store.put_template(&template)?;
            Ok(template)
        };
        let lab = Lab::furnish(config, &agent()?, make).await?;
        let ballast = Ballast::in_pool(lab.host.pool_directory());
        let small = Self { lab, ballast };
        // What a test that failed has left.
        small.ballast.give_back();
        small.lab.clear().await.expect("the small laboratory can be cleared");
        let volumes = small.lab.host.volumes();
        for volume in volumes.inventory().await.expect("its volumes can be listed") {
            volumes.remove(&volume).await.expect("a volume can be removed");
        }
        Ok(small)
    }

    /// Leaves the machine as it was found.
    pub async fn close(self) {
        self.ballast.give_back();
        self.lab.clear().await.expect("the small laboratory can be cleared");
        self.lab.host.close().await.expect("its pool can be unmounted");
        let data_dir = self.lab.data_dir.clone();
        drop(self);
        fs::remove_dir_all(data_dir).expect("its directory can be removed");
    }
}

/// A root filesystem with few files of another one's layers and some of one's own, as an archive in an empty directory.
pub fn small_root(layers: &[PathBuf], scratch: &Path, own: &[(&str, &str)]) -> io::Result<PathBuf> {
    let root = scratch.join("root");
    for directory in ["usr/bin", "usr/lib/x86_64-linux-gnu", "usr/lib64", "etc", "home", "root", "var"] {
        fs::create_dir_all(root.join(directory))?;
    }
    for (link, target) in [("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64"), ("sbin", "usr/bin")] {
        symlink(target, root.join(link))?;
    }
    let programs = PROGRAMS.iter().map(|name| format!("usr/bin/{name}"));
    let libraries = LIBRARIES.iter().map(|name| format!("usr/lib/x86_64-linux-gnu/{name}"));
    let more = ["usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "etc/passwd", "etc/group", "home/user"];
    for file in programs.chain(libraries).chain(more.map(str::to_owned)) {
        let Some(from) = layers.iter().rev().map(|layer| layer.join(&file)).find(|path| path.symlink_metadata().is_ok()) else { continue };
        run(Command::new("cp").arg("-a").arg(&from).arg(root.join(&file)))?;
        // A library is often a link to a file with its version.
        if let Ok(target) = fs::read_link(&from)
            && target.is_relative()
            && let Some(beside) = from.parent().map(|parent| parent.join(&target)).filter(|path| path.is_file())
            && let Some(to) = root.join(&file).parent().map(|parent| parent.join(&target))
        {
            run(Command::new("cp").arg("-a").arg(beside).arg(to))?;
        }
    }
    for (file, text) in own {
        fs::write(root.join(file), text)?;
    }
    let archive = scratch.join("root.tar");
    run(Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg("."))?;
    Ok(archive)
}
