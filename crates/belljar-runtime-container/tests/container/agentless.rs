//! Sandboxes whose first process is a script: what it sees comes back as the agent's last words.

use std::time::Instant;

use belljar_ports::{Runtime, RuntimeError};
use belljar_types::EndReason;

use crate::world::{Agent, World};

/// What the script wrote, after the sandbox ended and was removed.
async fn last_words(script: &str) -> String {
    let world = World::new(Agent::Script(script)).await;
    let spec = world.spec();
    let error = world.runtime.create(&spec).await.unwrap_err();
    let RuntimeError::Ended { detail, reason: EndReason::Exited, .. } = error else { panic!("{error:?}") };
    assert!(world.runtime.inventory().await.unwrap().is_empty());
    assert!(world.host.record(&spec.id).await.unwrap().is_none());
    world.close().await;
    detail.replace("\\n", "\n").replace("\\t", "\t")
}

#[tokio::test(flavor = "multi_thread")]
async fn its_mounts_name_nothing_of_the_host() {
    let words =
        last_words("while read id parent device root at options; do echo $root $at $options; done < /proc/self/mountinfo | head -20").await;
    assert!(words.starts_with("/ / rw,nosuid,nodev"), "{words}");
    for trace in ["/tmp/", "pool", "layers", "sandboxes", "/var/", "/dev/loop", "/run/belljar", "btrfs"] {
        assert!(!words.contains(trace), "{trace} in {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_finds_is_its_own() {
    let words = last_words(
        "ls /dev; ls /sys/devices/system/cpu; stat -c %a:%u:%g /dev/null /tmp /run /proc /.belljar/boot; cat /proc/1/cgroup | head -2; \
         cat /proc/sys/kernel/hostname; cat /proc/self/uid_map; cat /proc/kallsyms /proc/cmdline; ls /proc/acpi; echo done",
    )
    .await;
    let words: Vec<&str> = words.split_whitespace().collect();
    for expected in ["null", "ptmx", "shm", "online", "666:0:0", "1777:0:0", "600:0:0", "65536", "done"] {
        assert!(words.contains(&expected), "{expected} in {words:?}");
    }
    assert!(words.iter().filter(|word| word.contains(":/")).all(|word| word.ends_with(":/")), "its cgroups are roots: {words:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn root_can_change_nothing_that_is_not_its_own() {
    // A masked file is the null device: it takes everything and passes nothing on.
    let words = last_words(
        "masked() { [ \"$(stat -c %t:%T $1 2>/dev/null)\" = 1:3 ]; }; for path in /proc/sys/kernel/hostname /proc/sysrq-trigger /proc/sys/vm/drop_caches /proc/irq/default_smp_affinity \
         /sys/devices/system/cpu/online /dev/new; do masked $path || { (echo 1 > $path) 2>/dev/null && echo wrote $path; }; done; \
         mount -t tmpfs none /tmp 2>/dev/null && echo mounted; unshare -U true 2>/dev/null && echo unshared; \
         for map in uid_map gid_map projid_map; do (echo 0 0 1 > /proc/self/$map) 2>/dev/null && echo wrote $map; done; \
         (echo x > /etc/made && cat /etc/made)",
    )
    .await;
    assert_eq!(words, "x\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_change_nothing() {
    let world = World::new(Agent::Script("exit 0")).await;
    let mut spec = world.spec();
    spec.hostname = Some("no spaces".to_owned());
    let error = world.runtime.create(&spec).await.unwrap_err();
    assert!(matches!(&error, RuntimeError::Invalid(invalid) if invalid.to_string().starts_with("hostname: expected")), "{error:?}");
    let mut spec = world.spec();
    spec.layers = vec!["0".repeat(64).parse().unwrap()];
    let error = world.runtime.create(&spec).await.unwrap_err();
    assert!(matches!(&error, RuntimeError::Invalid(invalid) if invalid.to_string().starts_with("layers: expected")), "{error:?}");
    assert!(world.runtime.inventory().await.unwrap().is_empty());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_long_a_first_process_takes() {
    let world = World::new(Agent::Script("exit 0")).await;
    let mut times = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        world.runtime.create(&world.spec()).await.unwrap_err();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!("reserve, start, end and remove: median {:?}, least {:?}", times[times.len() / 2], times[0]);
    world.close().await;
}
