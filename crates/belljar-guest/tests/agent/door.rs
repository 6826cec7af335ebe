//! An agent whose door was handed over by whoever started it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use belljar_guest_client::{AsyncStream, Connect, Credentials, GuestClient};
use belljar_ports::Guest;
use tokio::net::UnixStream;

use crate::harness::{config, finish, shell};

struct ToDoor(PathBuf);

#[async_trait]
impl Connect for ToDoor {
    async fn connect(&self) -> std::io::Result<Box<dyn AsyncStream>> {
        Ok(Box::new(UnixStream::connect(&self.0).await?))
    }
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn it_is_the_only_way_in_and_programs_do_not_get_it() {
    let directory = tempfile::tempdir().unwrap();
    let (boot, door) = (directory.path().join("boot"), directory.path().join("door"));
    let config = config();
    std::fs::write(&boot, config.encode()).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(&door).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_belljar-guest"))
        .arg("--boot")
        .arg(&boot)
        .args(["--listen", "stdin"])
        .arg("--sudo-socket")
        .arg(directory.path().join("sudo.sock"))
        .arg("--keep-socket")
        .arg(directory.path().join("keep.sock"))
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .spawn()
        .unwrap();
    let agent = Ended(child);
    let credentials = Credentials { sandbox: config.sandbox, execution: config.execution, token: config.token };
    let client = GuestClient::new(Arc::new(ToDoor(door)), credentials);
    // It can be spoken to before it listens.
    client.hello().await.unwrap();

    let script = "readlink /proc/$PPID/fd/0; for fd in /proc/self/fd/*; do readlink $fd; done | grep -c socket";
    let (_, output) = client.start_attached(&shell(script)).await.unwrap();
    let finished = finish(output).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&finished.stdout), "/dev/null\n0\n");

    let inodes = |kind: &str| -> Vec<String> {
        let table = std::fs::read_to_string(format!("/proc/{}/net/{kind}", agent.0.id())).unwrap();
        table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(9).map(|inode| format!("socket:[{inode}]"))).collect()
    };
    let on_the_network = [inodes("tcp"), inodes("tcp6")].concat();
    let mut held = std::fs::read_dir(format!("/proc/{}/fd", agent.0.id())).unwrap();
    assert!(
        held.all(
            |fd| std::fs::read_link(fd.unwrap().path()).is_ok_and(|to| !on_the_network.iter().any(|one| to.as_os_str() == one.as_str()))
        )
    );
}
