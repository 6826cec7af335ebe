//! From a bare process to an agent: reads its configuration, hides it, and closes what it inherited.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use belljar_guest_protocol::{AGENT_PORT, BootConfig, BootError, keep, sudo};
use rustix::process::{DumpableBehavior, set_child_subreaper, set_dumpable_behavior};

const BOOT_FILE: &str = "/.belljar/boot";

/// Where things are; other than in a sandbox only for tests.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) boot: PathBuf,
    pub(crate) listen: Listen,
    pub(crate) sudo_socket: PathBuf,
    pub(crate) keep_socket: PathBuf,
}

/// Where the host is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Listen {
    /// On the sandbox's network, where others can come too.
    Network(SocketAddr),
    /// At a socket that was handed over as standard input, and that nobody but the host can reach.
    Stdin,
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(address) => address.fmt(f),
            Self::Stdin => f.write_str("standard input"),
        }
    }
}

/// Why the agent does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(
        "understand the argument {argument}: the agent takes --boot FILE, --listen ADDRESS:PORT or stdin, --sudo-socket PATH and --keep-socket PATH"
    )]
    Argument { argument: String },
    #[error("read {}", path.display())]
    ReadBoot {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("decode {}", path.display())]
    DecodeBoot {
        path: PathBuf,
        #[source]
        source: BootError,
    },
    #[error("remove {}, which holds a secret", path.display())]
    RemoveBoot {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("hide the agent's memory from other processes")]
    Hide(#[source] std::io::Error),
    #[error("start the agent's event loop")]
    Runtime(#[source] std::io::Error),
    #[error("offer sudo at {}", path.display())]
    Sudo {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("offer belljar-keep at {}", path.display())]
    Keep {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("listen on {place}")]
    Listen {
        place: Listen,
        #[source]
        source: std::io::Error,
    },
}

impl Options {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> Result<Self, StartError> {
        let mut options = Self {
            boot: BOOT_FILE.into(),
            listen: Listen::Network(SocketAddr::from(([0, 0, 0, 0], AGENT_PORT))),
            sudo_socket: sudo::SOCKET.into(),
            keep_socket: keep::SOCKET.into(),
        };
        while let Some(argument) = arguments.next() {
            let wrong = || StartError::Argument { argument: argument.to_string_lossy().into_owned() };
            let value = arguments.next().ok_or_else(wrong)?;
            match argument.to_str() {
                Some("--boot") => options.boot = value.into(),
                Some("--listen") if value == "stdin" => options.listen = Listen::Stdin,
                Some("--listen") => {
                    let address = value.to_str().and_then(|v| v.parse().ok()).ok_or_else(wrong)?;
                    options.listen = Listen::Network(address);
                }
                Some("--sudo-socket") => options.sudo_socket = value.into(),
                Some("--keep-socket") => options.keep_socket = value.into(),
                _ => return Err(wrong()),
            }
        }
        Ok(options)
    }
}

/// Reads the configuration and removes it; from then on only this process knows the token.
pub(crate) fn take_config(path: &Path) -> Result<BootConfig, StartError> {
    // Before the token is in memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|errno| StartError::Hide(errno.into()))?;
    let bytes = std::fs::read(path).map_err(|source| StartError::ReadBoot { path: path.into(), source })?;
    let config = BootConfig::decode(&bytes).map_err(|source| StartError::DecodeBoot { path: path.into(), source })?;
    std::fs::remove_file(path).map_err(|source| StartError::RemoveBoot { path: path.into(), source })?;
    Ok(config)
}

/// Makes this process fit to be the parent of all others.
pub(crate) fn settle(config: &BootConfig) {
    close_on_exec();
    // Files that callers make have exactly the mode they ask for; processes get the usual mask when they start.
    rustix::process::umask(rustix::fs::Mode::empty());
    // As pid 1 it is that anyway; elsewhere orphans come here all the same, where the kernel can.
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
    if let Some(name) = &config.hostname {
        set_host_name(name);
    }
}

/// Engines that fix the name themselves do not let the agent change it.
pub(crate) fn set_host_name(name: &str) {
    let _ = rustix::system::sethostname(name.as_bytes());
}

/// Descriptors that the engine left open must not reach the sandbox's programs.
fn close_on_exec() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<i32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    belljar_linux::child::close_on_exec(numbers.into_iter().filter(|fd| *fd > 2));
}
