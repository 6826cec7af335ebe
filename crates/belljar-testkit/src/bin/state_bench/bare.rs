//! The alternative: `runsc` by hand, with the platform that Belljar uses, on the same root and with the same program; and `cp -a`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use belljar_testkit::Lab;

use crate::figures::Figures;
use crate::{Failure, memory};

struct Bare {
    scratch: PathBuf,
    runsc: String,
}

impl Bare {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.runsc);
        command.arg(format!("--root={}", self.scratch.join("state").display()));
        command.args(["--platform=systrap", "--network=none", "--ignore-cgroups", "--overlay2=none"]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Result<(), Failure> {
        let status = self.command(words).status()?;
        if status.success() { Ok(()) } else { Err(format!("runsc {} ended with {status}", words.join(" ")).into()) }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        for name in ["first", "second"] {
            // Whatever is there of them.
            let _ = self.run(&["delete", "--force", name]);
        }
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

pub(crate) fn checkpoint_and_restore(lab: &Lab, megabytes: usize, figures: &mut Figures) -> Result<(), Failure> {
    let runsc = std::env::var("BELLJAR_RUNSC").unwrap_or_else(|_| "/usr/local/lib/belljar/runsc".to_owned());
    // On the pool, where Belljar's images go too.
    let scratch = lab.host.pool_directory().join("staging").join(format!("bare-{}", std::process::id()));
    let bare = Bare { scratch, runsc };
    if let Err(reason) = by_hand(&bare, lab, megabytes, figures) {
        figures.leave_out(&format!("runsc: checkpoint and restore, {megabytes} MB dirty"), reason.to_string());
    }
    Ok(())
}

fn by_hand(bare: &Bare, lab: &Lab, megabytes: usize, figures: &mut Figures) -> Result<(), Failure> {
    let (bundle, shared, image) = (bare.scratch.join("bundle"), bare.scratch.join("shared"), bare.scratch.join("image"));
    for directory in [&bundle, &shared, &image] {
        std::fs::create_dir_all(directory)?;
    }
    let rootfs = lab.host.layer_directory(lab.template.layers.first().ok_or("the template has no layer")?);
    std::fs::write(bundle.join("config.json"), serde_json::to_vec(&configuration(&rootfs, &shared, megabytes))?)?;
    let word = |path: &Path| path.display().to_string();
    bare.run(&["run", "--detach", "--bundle", &word(&bundle), "first"])?;
    while !shared.join("filled").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let start = Instant::now();
    bare.run(&["checkpoint", &format!("--image-path={}", word(&image)), "first"])?;
    figures.add(&format!("runsc: checkpoint, {megabytes} MB dirty"), start);
    let bytes: u64 = std::fs::read_dir(&image)?.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum();
    figures.set_bytes(&format!("runsc: memory image, {megabytes} MB dirty"), bytes);
    bare.run(&["delete", "--force", "first"])?;
    let start = Instant::now();
    bare.run(&["restore", "--detach", "--bundle", &word(&bundle), &format!("--image-path={}", word(&image)), "second"])?;
    figures.add(&format!("runsc: restore, {megabytes} MB dirty"), start);
    Ok(())
}

fn configuration(rootfs: &Path, shared: &Path, megabytes: usize) -> serde_json::Value {
    serde_json::json!({
        "ociVersion": "1.0.2",
        "root": { "path": rootfs, "readonly": true },
        "process": {
            "args": ["/usr/bin/python3", "-c", memory::filler(megabytes)], "cwd": "/", "env": ["PATH=/usr/bin:/bin"],
            "user": { "uid": 0, "gid": 0 }
        },
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/tmp", "type": "bind", "source": shared, "options": ["rbind", "rw"] }
        ],
        "linux": { "namespaces": [{ "type": "pid" }, { "type": "ipc" }, { "type": "uts" }, { "type": "mount" }, { "type": "network" }] }
    })
}

/// Copies a tree as people do.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    if status.success() { Ok(()) } else { Err(format!("cp -a ended with {status}").into()) }
}
