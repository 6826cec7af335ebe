//! The first process of the sandbox: shuts itself in, starts the command, and stays to reap what is left behind.
//!
//! Pid 1 is not the command itself, because the kernel lets pid 1 ignore signals that would end any other process. It has the guard's memory,
//! with the caller's environment in it, so nobody inside may look into it: it is not dumpable, and as shut in as the command.

mod cover;
mod etc;
mod root;
mod sources;

use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use belljar_linux::guarded::{self, Fence, Namespaces, Reopen, SignalSource};
use belljar_linux::netns::Links;
use belljar_linux::seccomp::{Policy, Program};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, set_dumpable_behavior, set_parent_process_death_signal,
    setrlimit, waitpid,
};

use crate::line::{At, Failure, Line, Record, Step};
use crate::plan::{Identity, Network, Plan};

const GUARD_FAILED: i32 = 125;
const HOST_NAME: &str = "belljar";
const LOOPBACK: u32 = 1;

/// Its whole life; the code it ends with matters to nobody, the guard is told on the line.
pub(crate) fn life(plan: &Plan, line: &Line, held_back: &SignalSource) -> i32 {
    match shut_in(plan, line).and_then(|()| start(plan, line, held_back)) {
        Ok(command) => reap_until(command, line),
        Err(failure) => {
            line.tell(&Record::Failed(failure));
            GUARD_FAILED
        }
    }
}

fn shut_in(plan: &Plan, line: &Line) -> Result<(), Failure> {
    line.wait_for_release().at(Step::Prepare, "")?;
    for tasks in &plan.enforced.membership.tasks {
        rustix::io::write(tasks, b"0").at(Step::JoinGroup, "")?;
    }
    if plan.identity == Identity::Stranger {
        guarded::become_root_inside().at(Step::BecomeUser, "")?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Step::Prepare, "")?;
    // After the change of identity, which takes it back.
    set_parent_process_death_signal(Some(Signal::KILL)).at(Step::Prepare, "")?;
    line.is_watched().at(Step::Prepare, "")?;
    if plan.network == Network::None {
        Links::open().and_then(|links| links.set_up(LOOPBACK, true)).at(Step::Loopback, "")?;
    }
    rustix::system::sethostname(HOST_NAME.as_bytes()).at(Step::HostName, "")?;
    root::enter(plan)?;
    confine(plan)
}

fn confine(plan: &Plan) -> Result<(), Failure> {
    let exactly = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    // Not 0: only this number also keeps a dump from a program that the host starts for it.
    setrlimit(Resource::Core, exactly(1)).at(Step::Limit, "")?;
    if let Some(processes) = plan.enforced.process_limit {
        // Never more than this user may have anyway; asking for more would be refused.
        let most = getrlimit(Resource::Nproc).maximum.unwrap_or(u64::MAX);
        setrlimit(Resource::Nproc, exactly(most.min(processes.into()))).at(Step::Limit, "")?;
    }
    let root = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).at(Step::Fence, "/")?;
    let fence = Fence::around(root.as_fd()).at(Step::Fence, "")?;
    guarded::drop_all_powers().at(Step::DropPowers, "")?;
    if let Some(fence) = fence {
        let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        for stream in streams {
            let kind = rustix::fs::fstat(stream).map(|stat| FileType::from_raw_mode(stat.st_mode)).at(Step::Fence, "")?;
            if matches!(kind, FileType::RegularFile | FileType::CharacterDevice) {
                let mode = rustix::fs::fcntl_getfl(stream).at(Step::Fence, "")? & OFlags::RWMODE;
                let how = Reopen { read: mode != OFlags::WRONLY, write: mode != OFlags::RDONLY };
                fence.let_reopen(stream, how).at(Step::Fence, "")?;
            }
        }
        fence.put_up().at(Step::Fence, "")?;
    }
    guarded::filter_calls(&Program::compile(&Policy::CONTAINER)).at(Step::Filter, "")
}

fn start(plan: &Plan, line: &Line, held_back: &SignalSource) -> Result<Pid, Failure> {
    rustix::process::chdir(&plan.cwd).at(Step::Directory, &plan.cwd)?;
    let pid = guarded::copy_of_this_process(Namespaces::Shared, None, || execute(plan, line, held_back)).at(Step::Start, "")?;
    i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(std::io::ErrorKind::InvalidData.into()).map_err(|source| Failure {
        step: Step::Start,
        path: Path::new("").to_owned(),
        source,
    })
}

fn execute(plan: &Plan, line: &Line, held_back: &SignalSource) -> i32 {
    let mut words = plan.command.iter();
    let Some(program) = words.next() else { return GUARD_FAILED };
    let environment = plan.environment.iter().map(|(name, value)| (name, value));
    held_back.release();
    // Looks the program up in the command's own path.
    let error = Command::new(program).args(words).env_clear().envs(environment).exec();
    line.tell(&Record::NotExecuted(error.raw_os_error().unwrap_or(0)));
    GUARD_FAILED
}

fn reap_until(command: Pid, line: &Line) -> i32 {
    loop {
        let (pid, status) = match waitpid(None, WaitOptions::UNTRACED) {
            Ok(Some(ended)) => ended,
            Ok(None) | Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return GUARD_FAILED,
        };
        if pid != command {
            continue;
        }
        if let Some(signal) = status.stopping_signal() {
            line.tell(&Record::Stopped(signal));
        } else if let Some(signal) = status.terminating_signal() {
            line.tell(&Record::Killed(signal));
            return 0;
        } else if let Some(code) = status.exit_status() {
            line.tell(&Record::Exited(code));
            return 0;
        }
    }
}
