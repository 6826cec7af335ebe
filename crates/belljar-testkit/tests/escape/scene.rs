//! The scene of the attempts: a sandbox with the programs in it, a neighbour to reach for, and one in which nobody may be root.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use belljar_guest_protocol::AGENT_PORT;
use belljar_ports::{Guest, GuestError};
use belljar_testkit::{Finished, Lab, Sandbox, path, run_spec, sh, sha256};
use belljar_types::{IsolationClass, Limits, PrivilegePolicy, ProcessSpec, WriteOptions};
use bytes::Bytes;
use futures_util::stream;

use crate::target::{Target, programs};

/// Where the programs are inside.
pub(crate) const INSIDE: &str = "/tmp/escape";
const NEIGHBOUR_PORT: u16 = 8000;

/// Small enough that going beyond them costs little.
pub(crate) const TIGHT: Limits = Limits { cpu_millis: 1000, memory_bytes: 192 << 20, disk_bytes: 64 << 20, pids: 96, wall_time: None };

/// A sandbox that attempts run in, and what they are told about it.
pub(crate) struct Stage {
    pub(crate) sandbox: Sandbox,
    facts: BTreeMap<String, String>,
}

/// Who is who.
pub(crate) struct Scene {
    pub(crate) target: Target,
    pub(crate) class: IsolationClass,
    lab: &'static Lab,
    neighbour: Sandbox,
    neighbour_address: String,
}

impl Scene {
    /// Plants the target and starts the neighbour.
    pub(crate) async fn set(class: IsolationClass) -> Self {
        let lab = Lab::get().await;
        let target = Target::plant(lab.host.gateway().netns_path(), &lab.host.pool_directory().join("layers")).await;
        let neighbour = lab.sandbox(class).await;
        let port = NEIGHBOUR_PORT.to_string();
        let listener = ProcessSpec::new(["python3", "-m", "http.server", &port]);
        neighbour.guest.start(&listener).await.unwrap();
        let record = lab.host.record(&neighbour.execution.sandbox).await.unwrap().unwrap();
        Self { target, class, lab, neighbour, neighbour_address: record.guest_address.to_string() }
    }

    /// Makes a sandbox and puts the programs into it.
    pub(crate) async fn stage(&self, limits: Limits, privilege: PrivilegePolicy) -> Stage {
        let mut spec = self.lab.spec();
        spec.limits = limits.clone();
        spec.privilege = privilege;
        let sandbox = self.lab.create(self.class, &spec).await.unwrap();
        put(&*sandbox.guest, &programs(), &["attempts", "lib", "races", "checkers.sh"], INSIDE).await;
        let record = self.lab.host.record(&sandbox.execution.sandbox).await.unwrap().unwrap();
        let mut facts = self.target.facts.clone();
        let broadcast = u32::from(record.guest_address) | 3;
        for (name, value) in [
            ("HOST_DIRECTORY", self.lab.data_dir.display().to_string()),
            ("GATEWAY", record.gateway_address.to_string()),
            ("SELF", record.guest_address.to_string()),
            ("LINK_BROADCAST", std::net::Ipv4Addr::from(broadcast).to_string()),
            ("NEIGHBOUR", self.neighbour_address.clone()),
            ("NEIGHBOUR_PORT", NEIGHBOUR_PORT.to_string()),
            ("FORGED_SOURCE", self.neighbour_address.clone()),
            ("AGENT_PORT", AGENT_PORT.to_string()),
            ("TOKEN_HASH", sha256(record.token.reveal())),
            ("MEMORY_LIMIT", limits.memory_bytes.to_string()),
            ("DISK_LIMIT", limits.disk_bytes.to_string()),
            ("PROCESS_LIMIT", limits.pids.to_string()),
            ("PATIENCE", "1".into()),
        ] {
            facts.insert(format!("ESCAPE_{name}"), value);
        }
        facts.insert("PYTHONPATH".into(), format!("{INSIDE}/lib"));
        facts.insert("PYTHONDONTWRITEBYTECODE".into(), "1".into());
        Stage { sandbox, facts }
    }

    /// Ends it all; fails the test if the host noticed anything.
    pub(crate) async fn strike(self) {
        self.neighbour.destroy().await;
        self.target.expect_untouched().await;
    }
}

impl Stage {
    /// Runs a command there with the facts in its environment.
    pub(crate) async fn run(&self, user: &str, argv: &[&str]) -> Result<Finished, GuestError> {
        let mut spec = ProcessSpec::new(argv);
        spec.user = Some(user.parse()?);
        spec.env.clone_from(&self.facts);
        spec.deadline = Some(Duration::from_secs(300));
        run_spec(&*self.sandbox.guest, spec).await
    }
}

/// Sends programs as one archive, through the same verbs that anybody has.
pub(crate) async fn put(guest: &dyn Guest, from: &Path, names: &[&str], to: &str) {
    let packed = tokio::process::Command::new("tar")
        .args(["--create", "--owner=0", "--group=0", "--directory"])
        .arg(from)
        .args(names)
        .output()
        .await
        .unwrap();
    assert!(packed.status.success());
    let content = Box::pin(stream::iter([Ok(Bytes::from(packed.stdout))]));
    guest.write_file(&path(format!("{to}.tar")), &WriteOptions::default(), content).await.unwrap();
    sh(guest, &format!("mkdir {to} && tar -x -C {to} -f {to}.tar && rm {to}.tar")).await.text();
}
