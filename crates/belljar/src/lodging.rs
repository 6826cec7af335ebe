//! Where a command runs: in a sandbox that is there, or in one that is made for it and ended with it.

use std::time::Duration;

use belljar_client::{Client, CreateSandbox};
use belljar_types::SandboxId;

use crate::command_error::CommandError;
use crate::commands::Making;
use crate::progress;

/// A sandbox whose maker died ends this soon.
const LEASE: Duration = Duration::from_secs(120);
const RENEWAL: Duration = Duration::from_secs(40);

/// Which sandbox.
#[derive(clap::Args, Debug, Clone)]
#[group(required = true, multiple = false)]
pub(crate) struct Lodging {
    /// Id of the sandbox
    #[arg(value_name = "SANDBOX")]
    sandbox: Option<SandboxId>,
    /// Make a sandbox for this and end it afterwards
    #[arg(long)]
    new: bool,
}

impl Lodging {
    /// This sandbox, or one that is made.
    pub(crate) fn of(sandbox: Option<SandboxId>) -> Self {
        Self { new: sandbox.is_none(), sandbox }
    }

    /// The sandbox that is there.
    pub(crate) fn sandbox(&self) -> Result<&SandboxId, CommandError> {
        self.sandbox.as_ref().ok_or_else(|| CommandError::Refused("this needs the id of a sandbox".to_owned()))
    }

    /// Does the work in the sandbox; a new one is ended whatever came of it.
    pub(crate) async fn within<T>(
        &self,
        client: &Client,
        making: Making,
        work: impl AsyncFnOnce(&SandboxId) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        if let Some(sandbox) = &self.sandbox {
            return work(sandbox).await;
        }
        let request = CreateSandbox { lease_seconds: Some(LEASE.as_secs()), ..making.request()? };
        let made = progress::waiting("making the sandbox", client.create_sandbox(&request, None)).await;
        let sandbox = made.map_err(CommandError::asked("make a sandbox"))?.id;
        let done = tokio::select! {
            done = work(&sandbox) => done,
            () = keep(client, &sandbox) => Err(CommandError::Refused("the lease is kept for ever".to_owned())),
        };
        match client.kill_sandbox(&sandbox).await {
            Ok(_) => done,
            Err(error) => done.and(Err(CommandError::asked(format!("end sandbox {sandbox}"))(error))),
        }
    }
}

/// Renews the lease as long as it is waited for; if that fails for two minutes, the work in the sandbox fails too and says why.
async fn keep(client: &Client, sandbox: &SandboxId) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        let _ = client.set_lease(sandbox, LEASE.as_secs(), true).await;
    }
}
