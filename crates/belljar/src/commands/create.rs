//! `belljar create`: a new sandbox.

use std::time::Duration;

use belljar_client::{AskedLimits, CreateSandbox, VolumeMount};
use belljar_types::{Invalid, MountMode};

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::{progress, screen, units};

/// Make a sandbox and print its id
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar create
  S=$(belljar create --memory 1GiB --lease 30m --meta task=42)
  belljar exec $S -- python3 -c 'print(6*7)'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    what: Making,
    /// How long nobody may use it before it ends, as in 10m
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    idle_timeout: Option<Duration>,
    /// How long it lives from now on, as in 1h; `belljar lease` changes it [default: the server's]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    lease: Option<Duration>,
    /// When its lease runs out or nobody uses it, pause it instead of ending it; `belljar resume` lets it go on
    #[arg(long)]
    pause_on_timeout: bool,
    /// With --pause-on-timeout: keep its files alone, not its memory
    #[arg(long, requires = "pause_on_timeout")]
    files_only: bool,
    /// Using it while it is paused resumes it
    #[arg(long)]
    auto_resume: bool,
    /// Your own words about it, to find it again with `belljar ls --meta`; may be repeated
    #[arg(long = "meta", value_name = "NAME=VALUE", value_parser = units::parse_pair)]
    metadata: Vec<(String, String)>,
    /// Variable for every process in it; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = units::parse_pair)]
    env: Vec<(String, String)>,
    /// Host name inside [default: its id]
    #[arg(long, value_name = "NAME")]
    hostname: Option<String>,
    /// The same key and request again answer with the same sandbox
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// What a sandbox is made from and what it may use; `exec --new` and `shell --new` take the same.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct Making {
    /// What it is made from; `belljar template ls` lists what there is [default: the server's]
    #[arg(long, value_name = "NAME", help_heading = "The new sandbox")]
    template: Option<String>,
    /// From this snapshot instead, by its id or name
    #[arg(long, value_name = "SNAPSHOT", conflicts_with = "template", help_heading = "The new sandbox")]
    snapshot: Option<String>,
    /// What isolates it: auto, gvisor, container or microvm. `auto` is the strongest that works on the server; another is that one or an error [default: the server's]
    #[arg(long, value_name = "CLASS", help_heading = "The new sandbox")]
    isolation: Option<String>,
    /// Network: `none`, or `open` for outgoing connections to public addresses [default: none]
    #[arg(long = "net", value_name = "NETWORK", help_heading = "The new sandbox")]
    network: Option<String>,
    /// What it may do: a policy file, or the name of a profile: offline, packages, open
    #[arg(long, value_name = "FILE|PROFILE", help_heading = "The new sandbox")]
    policy: Option<String>,
    /// Cores it may use, as in 0.5 or 2
    #[arg(long, value_name = "CORES", value_parser = units::parse_cores, help_heading = "The new sandbox")]
    cpu: Option<u32>,
    /// Memory it may use, as in 512MiB
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size, help_heading = "The new sandbox")]
    memory: Option<u64>,
    /// Disk it may use beyond its template, as in 2GiB
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size, help_heading = "The new sandbox")]
    disk: Option<u64>,
    /// Processes and threads it may have at one time
    #[arg(long, value_name = "NUMBER", help_heading = "The new sandbox")]
    pids: Option<u32>,
    /// Ends so long after its start, whatever happens
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, help_heading = "The new sandbox")]
    wall_time: Option<Duration>,
    /// A volume, at a directory of the sandbox; with :ro to read it beside others, with :shared to write beside others that say the same. May be repeated
    #[arg(long = "volume", value_name = "NAME:/PATH[:ro|:shared]", value_parser = parse_volume, help_heading = "The new sandbox")]
    volumes: Vec<VolumeMount>,
    /// Nothing inside may become root
    #[arg(long, help_heading = "The new sandbox")]
    no_root: bool,
}

impl Making {
    /// The same, from this template unless another was asked for.
    pub(crate) fn or_template(self, template: &str) -> Self {
        Self { template: self.template.or_else(|| Some(template.to_owned())), ..self }
    }

    /// The request, as far as it goes.
    pub(crate) fn request(self) -> Result<CreateSandbox, CommandError> {
        Ok(CreateSandbox {
            template: self.template,
            snapshot: self.snapshot,
            isolation: self.isolation,
            limits: AskedLimits {
                cpu_millis: self.cpu,
                memory_bytes: self.memory,
                disk_bytes: self.disk,
                pids: self.pids,
                wall_time_seconds: self.wall_time.map(|time| time.as_secs()),
            },
            network: self.network,
            policy: self.policy.as_deref().map(super::policy::to_send).transpose()?,
            volumes: self.volumes,
            privilege: self.no_root.then(|| "user-only".to_owned()),
            ..CreateSandbox::default()
        })
    }
}

/// Reads `NAME:/PATH`, `NAME:/PATH:ro` and `NAME:/PATH:shared`.
fn parse_volume(text: &str) -> Result<VolumeMount, Invalid> {
    let wrong = || Invalid::new("volume", "NAME:/PATH, NAME:/PATH:ro or NAME:/PATH:shared", text);
    let (volume, rest) = text.split_once(':').filter(|(volume, rest)| !volume.is_empty() && rest.starts_with('/')).ok_or_else(wrong)?;
    let (path, mode) = match rest.rsplit_once(':') {
        None => (rest, MountMode::ReadWrite),
        Some((path, "ro")) => (path, MountMode::ReadOnly),
        Some((path, "rw")) => (path, MountMode::ReadWrite),
        Some((path, "shared")) => (path, MountMode::Shared),
        Some(_) => return Err(wrong()),
    };
    Ok(VolumeMount { volume: volume.to_owned(), path: path.to_owned(), mode: mode.to_string() })
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let request = CreateSandbox {
        env: arguments.env.into_iter().collect(),
        metadata: arguments.metadata.into_iter().collect(),
        lease_seconds: arguments.lease.map(|lease| lease.as_secs()),
        idle_timeout_seconds: arguments.idle_timeout.map(|idle| idle.as_secs()),
        on_timeout: arguments.pause_on_timeout.then(|| if arguments.files_only { "pause-files" } else { "pause" }.to_owned()),
        auto_resume: arguments.auto_resume,
        hostname: arguments.hostname,
        ..arguments.what.request()?
    };
    let made = progress::waiting("making the sandbox", client.create_sandbox(&request, arguments.idempotency_key.as_deref())).await;
    let sandbox = made.map_err(CommandError::asked("make a sandbox"))?;
    if arguments.remote.json {
        screen::json(&sandbox)?;
    } else {
        screen::line(sandbox.id.as_str())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_read_as_people_write_it() {
        let read = |text: &str| parse_volume(text).map(|mount| (mount.volume, mount.path, mount.mode)).ok();
        let mount = |volume: &str, path: &str, mode: &str| Some((volume.to_owned(), path.to_owned(), mode.to_owned()));
        assert_eq!(read("data:/mnt/data"), mount("data", "/mnt/data", "read-write"));
        assert_eq!(read("data:/mnt/data:ro"), mount("data", "/mnt/data", "read-only"));
        assert_eq!(read("_x:/d:shared"), mount("_x", "/d", "shared"));
        for wrong in ["", "data", ":/data", "data:data", "data:/data:rx", "/data"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
