//! How much room the host says it has, on a real pool and in a real control group.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use belljar_host::HostRoom;
use belljar_ports::Capacity;
use rustix::fs::statvfs;

use crate::scene::Scene;

#[tokio::test]
async fn the_room_is_the_smaller_of_the_pools_and_its_disks() {
    let scene = Scene::new().await;
    let room = HostRoom::new(&scene.directory).unwrap();
    let before = room.room().unwrap();
    assert!(before.memory_available_bytes > 0 && before.memory_available_bytes < before.memory_total_bytes);
    let pool = statvfs(scene.host.pool_directory()).unwrap();
    assert!(before.disk_available_bytes > 0 && before.disk_available_bytes <= pool.f_blocks * pool.f_frsize);
    drop(room);
    scene.host.close().await.unwrap();

    // Such an image promises more than the small disk that it lies on.
    let small = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(small.path()).status().unwrap();
    assert!(mounted.success());
    fs::create_dir(small.path().join("pool")).unwrap();
    fs::File::create(small.path().join("pool.img")).unwrap().set_len(1 << 30).unwrap();
    let bound = Command::new("mount").args(["-t", "tmpfs", "-o", "size=900m", "tmpfs"]).arg(small.path().join("pool")).status().unwrap();
    let room = HostRoom::new(small.path()).unwrap().room();
    let unmounted = Command::new("umount").arg("-R").arg(small.path()).status().unwrap();
    assert!(bound.success() && unmounted.success());
    assert!(room.unwrap().disk_available_bytes <= 64 << 20);
}

/// Set for the process that goes into a group of its own: the group.
const GROUP: &str = "BELLJAR_TEST_CAPACITY_GROUP";
const LIMIT: u64 = 300 << 20;

#[tokio::test]
async fn a_limit_around_the_server_limits_the_room() {
    if let Some(group) = std::env::var_os(GROUP).map(PathBuf::from) {
        fs::write(group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("pool")).unwrap();
        fs::write(data.path().join("pool.img"), b"").unwrap();
        let room = HostRoom::new(data.path()).unwrap().room().unwrap();
        assert_eq!(room.memory_total_bytes, LIMIT);
        assert!(room.memory_available_bytes < LIMIT && room.memory_available_bytes > LIMIT / 2, "{room:?}");
        return;
    }
    let (tree, file) = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
        .into_iter()
        .find(|(tree, _)| fs::exists(PathBuf::from(tree).join("cgroup.procs")).unwrap())
        .unwrap();
    let group = PathBuf::from(tree).join(format!("belljar-capacity-{}", std::process::id()));
    fs::create_dir(&group).unwrap();
    let limited = fs::write(group.join(file), LIMIT.to_string());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "capacity::a_limit_around_the_server_limits_the_room", "--nocapture"])
        .env(GROUP, &group)
        .output()
        .unwrap();
    fs::remove_dir(&group).unwrap();
    limited.unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}
