//! What `belljar_linux::cgroup` promises, each with the way to find out.
//!
//! Nothing here depends on how fast the machine is: a wait ends when the thing happened, and what must not happen is looked for where a slow
//! machine would only make it less likely.

use std::error::Error;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use belljar_linux::cgroup::{Cgroup, CgroupLimits, Controller, Layout, Tree};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::child::Actor;

pub(crate) type Broken = Box<dyn Error>;
type Kept = Result<(), Broken>;
type Promise = fn(&Arc<Tree>, &Layout) -> Kept;

pub(crate) const ALL: &[(&str, Promise)] = &[
    ("every controller a limit needs is found", controllers),
    ("limits reach the kernel", limits),
    ("a limit the kernel refuses leaves no group", refused_limit),
    ("a name is given once", twice),
    ("a process is moved in by its maker or enters by itself", entry),
    ("memory ends at the limit, swap or not, and the kill is counted", memory),
    ("forks end at the limit", pids),
    ("a busy loop is held to its share", cpu),
    ("usage follows what is used", usage),
    ("freezing stops, thawing lets go on", freeze),
    ("the end of the last process is notified", notification),
    ("waiting sleeps", waiting),
    ("killing gets what is forking at that moment", kill_bomb),
    ("killing gets what is frozen", kill_frozen),
    ("removing takes what is inside and below", remove),
    ("a group is found again by its name", found_again),
];

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

fn controllers(_: &Arc<Tree>, layout: &Layout) -> Kept {
    for controller in [Controller::Cpu, Controller::Memory, Controller::Pids] {
        hold(layout.has(controller), || format!("no {}", controller.as_str()))?;
    }
    Ok(())
}

fn limits(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits { cpu_millis: Some(1500), memory_bytes: Some(64 * MIB), pids: Some(77) })?;
    is(control(&group, &["pids.max"]).as_deref(), Some("77"))?;
    is(control(&group, &["memory.max", "memory.limit_in_bytes"]), Some((64 * MIB).to_string()))?;
    // Kernels built without swap accounting have none of the first two.
    let swap = control(&group, &["memory.swap.max", "memory.memsw.limit_in_bytes", "memory.swappiness"]);
    hold(swap == Some("0".into()) || swap == Some((64 * MIB).to_string()), || format!("swap is {swap:?}"))?;
    let quota = control(&group, &["cpu.max"])
        .or_else(|| Some(format!("{} {}", control(&group, &["cpu.cfs_quota_us"])?, control(&group, &["cpu.cfs_period_us"])?)))
        .ok_or("there is no quota")?;
    let parts: Vec<u64> = quota.split(' ').filter_map(|part| part.parse().ok()).collect();
    hold(matches!(parts[..], [quota, period] if quota * 1000 == period * 1500), || format!("the quota is {quota}"))
}

fn refused_limit(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let made = tree.create("a", &CgroupLimits { pids: Some(u32::MAX), ..Default::default() });
    hold(made.is_err(), || "it was taken".into())?;
    is(tree.names()?, vec![])
}

fn twice(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits { pids: Some(9), ..Default::default() })?;
    hold(tree.create("a", &CgroupLimits::default()).is_err(), || "it was given twice".into())?;
    is(control(&group, &["pids.max"]).as_deref(), Some("9"))
}

fn entry(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits::default())?;
    is(group.is_populated()?, false)?;
    let moved = Actor::inside(&group, &["rest"])?;
    let files: Vec<String> = group.procs_paths().iter().map(|path| path.display().to_string()).collect();
    let mut role = vec!["enter"];
    role.extend(files.iter().map(String::as_str));
    let mut entered = Actor::waiting(&role)?;
    entered.begin()?;
    is(entered.line()?, "entered".into())?;
    for pid in [moved.pid(), entered.pid()] {
        for file in &files {
            let listed = std::fs::read_to_string(file)?.lines().any(|line| line == pid.to_string());
            hold(listed, || format!("{pid} is not in {file}"))?;
        }
    }
    is(group.usage()?.pids, 2)?;
    is(group.is_populated()?, true)
}

fn memory(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let limit = 48 * MIB;
    let group = tree.create("a", &CgroupLimits { memory_bytes: Some(limit), ..Default::default() })?;
    let mut modest = Actor::inside(&group, &["eat", &(8 * MIB).to_string()])?;
    is(modest.line()?, "ate".into())?;
    is(group.oom_kills()?, 0)?;
    let mut hungry = Actor::inside(&group, &["eat", &(4 * limit).to_string()])?;
    is(hungry.line()?, String::new())?;
    was_killed(&mut hungry)?;
    eventually("the kill is counted", || Ok(group.oom_kills()? >= 1))?;
    hold(group.usage()?.memory_peak_bytes <= limit, || format!("{:?}", group.usage()))
}

fn pids(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits { pids: Some(6), ..Default::default() })?;
    let mut many = Actor::inside(&group, &["multiply", "20"])?;
    is(many.line()?, "5".into())?;
    is(group.usage()?.pids, 6)
}

fn cpu(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits { cpu_millis: Some(200), ..Default::default() })?;
    let used_before = group.usage()?.cpu_micros;
    let began = Instant::now();
    let _busy = Actor::inside(&group, &["spin", "2"])?;
    eventually("the loops run", || Ok(group.usage()?.cpu_micros - used_before > 300_000))?;
    let used = Duration::from_micros(group.usage()?.cpu_micros - used_before);
    let share = used.as_secs_f64() / began.elapsed().as_secs_f64();
    // A busy machine only makes the share smaller; so that the quota and not the neighbours did it, the kernel must say so too.
    hold(share < 0.4, || format!("two loops got {share:.2} of a processor instead of 0.2"))?;
    let stat = lines_with(&group, "cpu.stat", "nr_throttled").ok_or("there is no cpu.stat with throttling")?;
    hold(stat > 0, || "the kernel never throttled them".into())
}

fn usage(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits { memory_bytes: Some(128 * MIB), ..Default::default() })?;
    let empty = group.usage()?;
    is(empty.pids, 0)?;
    let mut eater = Actor::inside(&group, &["eat", &(32 * MIB).to_string()])?;
    is(eater.line()?, "ate".into())?;
    let full = group.usage()?;
    is(full.pids, 1)?;
    hold(full.memory_bytes >= 32 * MIB && full.memory_bytes <= 128 * MIB, || format!("{full:?}"))?;
    hold(full.cpu_micros > empty.cpu_micros, || format!("{full:?}"))?;
    drop(eater);
    eventually("memory is given back", || Ok(group.usage()?.memory_bytes < 16 * MIB))?;
    let after = group.usage()?;
    hold(after.memory_peak_bytes >= 32 * MIB && after.cpu_micros >= full.cpu_micros, || format!("{after:?}"))
}

fn freeze(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits::default())?;
    let mut counter = Actor::inside(&group, &["count"])?;
    let steps = steps_of(&mut counter)?;
    eventually("it counts", || Ok(steps.load(Ordering::Acquire) > 3))?;
    for _ in 0..3 {
        is(group.is_frozen()?, false)?;
        group.freeze()?;
        is(group.is_frozen()?, true)?;
        // What it wrote before may still be on its way through the pipe.
        thread::sleep(Duration::from_millis(100));
        let standing = steps.load(Ordering::Acquire);
        thread::sleep(Duration::from_millis(200));
        is(steps.load(Ordering::Acquire), standing)?;
        group.thaw()?;
        eventually("it goes on", || Ok(steps.load(Ordering::Acquire) > standing + 3))?;
    }
    Ok(())
}

fn notification(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits::default())?;
    let actor = Actor::inside(&group, &["rest"])?;
    let waiter = thread::spawn({
        let group = group.clone();
        move || group.wait_empty(PATIENCE)
    });
    let Some(events) = group.events()? else {
        // v1 has no such notification; there the waiting itself is the promise.
        drop(actor);
        return hold(waiter.join().map_err(|_| "the waiter died")??, || "it was never empty".into());
    };
    let mut file = std::fs::File::from(events);
    // Reading arms the notification.
    file.read_to_string(&mut String::new())?;
    is(ready(&file, Duration::from_millis(100))?, false)?;
    drop(actor);
    is(ready(&file, PATIENCE)?, true)?;
    hold(waiter.join().map_err(|_| "the waiter died")??, || "it was never empty".into())?;
    is(group.is_populated()?, false)
}

fn waiting(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits::default())?;
    let _resting = Actor::inside(&group, &["rest"])?;
    let began = Instant::now();
    let before = processor_time();
    is(group.wait_empty(Duration::from_millis(500))?, false)?;
    let (used, passed) = (processor_time() - before, began.elapsed());
    hold(used < passed / 4, || format!("it used {used:?} of the processor in {passed:?}"))
}

fn kill_bomb(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits { pids: Some(256), ..Default::default() })?;
    for _ in 0..4 {
        let bomb = Actor::inside(&group, &["bomb"])?;
        eventually("it has spread", || Ok(group.usage()?.pids >= 24))?;
        group.kill()?;
        is(group.wait_empty(PATIENCE)?, true)?;
        drop(bomb);
        // What is dead is counted until it is reaped.
        eventually("all are reaped", || Ok(group.usage()?.pids == 0))?;
    }
    Ok(())
}

fn kill_frozen(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits::default())?;
    let mut actor = Actor::inside(&group, &["count"])?;
    group.freeze()?;
    group.kill()?;
    was_killed(&mut actor)?;
    is(group.wait_empty(PATIENCE)?, true)
}

fn remove(tree: &Arc<Tree>, _: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits::default())?;
    let mut inside = Actor::inside(&group, &["rest"])?;
    let below = group.path().join("below");
    std::fs::create_dir(&below)?;
    let mut deeper = Actor::inside(&group, &["rest"])?;
    std::fs::write(below.join("cgroup.procs"), deeper.pid().to_string())?;
    group.remove()?;
    was_killed(&mut inside)?;
    was_killed(&mut deeper)?;
    is(group.exists(), false)?;
    is(tree.names()?, vec![])?;
    group.remove()?;
    is(group.is_populated()?, false)
}

fn found_again(tree: &Arc<Tree>, layout: &Layout) -> Kept {
    let group = tree.create("a", &CgroupLimits { pids: Some(9), ..Default::default() })?;
    let mut actor = Actor::inside(&group, &["rest"])?;
    let name = group.path().parent().and_then(|path| path.file_name()).ok_or("the group has no parent")?.to_string_lossy().into_owned();
    let later = Tree::open(layout, &name)?;
    is(later.names()?, vec!["a".to_owned()])?;
    is(later.group("a").is_populated()?, true)?;
    later.group("a").remove()?;
    was_killed(&mut actor)?;
    is(group.exists(), false)
}

fn steps_of(actor: &mut Actor) -> Result<Arc<AtomicU64>, Broken> {
    let mut output = actor.take_output().ok_or("its output is read already")?;
    let steps = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&steps);
    thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok(length @ 1..) = output.read(&mut buffer) {
            counted.fetch_add(length as u64, Ordering::Release);
        }
    });
    Ok(steps)
}

fn ready(file: &std::fs::File, at_most: Duration) -> Result<bool, Broken> {
    let timeout = Timespec { tv_sec: at_most.as_secs().cast_signed(), tv_nsec: at_most.subsec_nanos().into() };
    Ok(poll(&mut [PollFd::new(file, PollFlags::PRI)], Some(&timeout))? > 0)
}

/// What this thread used of the processor.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The first of these control files that the group has, in whatever hierarchy.
fn control(group: &Cgroup, names: &[&str]) -> Option<String> {
    let text = names.iter().flat_map(|name| paths(group, name)).find_map(|path| std::fs::read_to_string(path).ok())?;
    Some(text.trim().to_owned())
}

/// The number after a key, from the first file of this name that has the key.
fn lines_with(group: &Cgroup, file: &str, key: &str) -> Option<u64> {
    let texts = paths(group, file).into_iter().filter_map(|path| std::fs::read_to_string(path).ok());
    texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
}

fn paths(group: &Cgroup, file: &str) -> Vec<PathBuf> {
    group.procs_paths().iter().map(|procs| procs.with_file_name(file)).collect()
}

fn hold(kept: bool, otherwise: impl FnOnce() -> String) -> Kept {
    if kept { Ok(()) } else { Err(otherwise().into()) }
}

#[allow(clippy::needless_pass_by_value, reason = "as with assert_eq!, what is compared is seldom kept")]
fn is<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Kept {
    hold(found == expected, || format!("expected {expected:?}, got {found:?}"))
}

fn was_killed(actor: &mut Actor) -> Kept {
    let mut status = None;
    eventually("the end of a process", || {
        status = actor.ended()?;
        Ok(status.is_some())
    })?;
    is(status.and_then(|status| status.signal()), Some(9))
}

fn eventually(what: &str, mut happened: impl FnMut() -> Result<bool, Broken>) -> Kept {
    let deadline = Instant::now() + PATIENCE;
    while !happened()? {
        hold(Instant::now() < deadline, || format!("never came: {what}"))?;
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
