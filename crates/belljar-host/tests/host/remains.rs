//! Every state between nothing and a whole sandbox, as a crash while reserving or releasing would leave it, is removed by its id alone.

use std::path::Path;

use belljar_host::{Host, Reservation};
use belljar_types::IsolationClass;

use crate::scene::{Scene, config, spec};

type Undo = fn(&Reservation, &Path);

fn drop_disk(reserved: &Reservation, pool: &Path) {
    let parent = std::fs::File::open(pool.join("sandboxes")).unwrap();
    belljar_linux::btrfs::delete_subvolume(&parent, reserved.record.id.as_str().as_ref()).unwrap();
}

fn drop_cgroup(reserved: &Reservation, _: &Path) {
    reserved.cgroup.remove().unwrap();
}

fn drop_one_cgroup_directory(reserved: &Reservation, _: &Path) {
    let paths = reserved.cgroup.procs_paths();
    std::fs::remove_dir(paths[paths.len() / 2].parent().unwrap()).unwrap();
}

fn drop_first_cgroup_directory(reserved: &Reservation, _: &Path) {
    std::fs::remove_dir(reserved.cgroup.procs_paths()[0].parent().unwrap()).unwrap();
}

fn drop_record(reserved: &Reservation, _: &Path) {
    std::fs::rename(reserved.home.join("record.json"), reserved.home.join("record.json.next")).unwrap();
}

fn spoil_record(reserved: &Reservation, _: &Path) {
    std::fs::write(reserved.home.join("record.json"), b"{\"id\":").unwrap();
}

fn drop_home(reserved: &Reservation, _: &Path) {
    std::fs::remove_dir_all(&reserved.home).unwrap();
}

fn drop_upper(reserved: &Reservation, _: &Path) {
    std::fs::remove_dir(&reserved.upper).unwrap();
}

fn drop_namespace(reserved: &Reservation, _: &Path) {
    belljar_linux::netns::Netns::forget(&reserved.slot.netns).unwrap();
}

fn leave_a_process(reserved: &Reservation, _: &Path) {
    let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
    reserved.cgroup.attach(child.id()).unwrap();
    std::thread::spawn(move || child.wait());
}

const STATES: [(&str, &[Undo]); 13] = [
    ("only a home", &[drop_cgroup, drop_disk, drop_record]),
    ("only a record", &[drop_cgroup, drop_disk]),
    ("a record and half a disk", &[drop_cgroup, drop_upper]),
    ("a record and a disk", &[drop_cgroup]),
    ("half a cgroup", &[drop_one_cgroup_directory]),
    ("a cgroup without its first directory", &[drop_first_cgroup_directory]),
    ("whole", &[]),
    ("whole and running", &[leave_a_process]),
    ("no disk any more", &[drop_disk]),
    ("a record that makes no sense", &[spoil_record]),
    ("no home", &[drop_home]),
    ("no home, and it runs", &[leave_a_process, drop_home]),
    ("no namespace, as after a reboot", &[drop_cgroup, drop_namespace]),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_state_in_between_is_removed_by_whoever_opens_next() {
    let mut scene = Scene::new().await;
    let baseline = scene.counts().await;
    for (name, undo) in STATES {
        let reserved = scene.host.reserve(IsolationClass::Container, &spec()).await.unwrap();
        for step in undo {
            step(&reserved, scene.host.pool_directory());
        }
        let Scene { host, directory, _sweep, _temporary } = scene;
        drop(host);
        let host = Host::open(config(&directory)).await.unwrap();
        scene = Scene { host, directory, _sweep, _temporary };
        scene.host.release(&reserved.record.id).await.unwrap();
        assert_eq!(scene.counts().await, baseline, "{name}");
    }
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_in_between_is_removed_by_the_same_owner() {
    let scene = Scene::new().await;
    let baseline = scene.counts().await;
    // Without a record the same owner cannot know the slot, nor the quota of a disk that it did not drop itself: only a crash leads there,
    // and the next opening sees to it.
    let keeps_record = |undo: &[Undo]| {
        !undo
            .iter()
            .any(|step| [drop_record as Undo, spoil_record, drop_home, drop_disk].iter().any(|other| std::ptr::fn_addr_eq(*step, *other)))
    };
    for (name, undo) in STATES.into_iter().filter(|(_, undo)| keeps_record(undo)) {
        let reserved = scene.host.reserve(IsolationClass::Container, &spec()).await.unwrap();
        for step in undo {
            step(&reserved, scene.host.pool_directory());
        }
        scene.host.release(&reserved.record.id).await.unwrap();
        assert_eq!(scene.counts().await, baseline, "{name}");
    }
    scene.close().await;
}
