//! Where a command runs: in a sandbox that is there, or in one that is made for it and ended with it.

use belljar_client::{Client, CreateSandbox, HELD};
use belljar_types::SandboxId;

use crate::command_error::CommandError;
use crate::commands::Making;
use crate::progress;

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
        let request = CreateSandbox { lease_seconds: Some(HELD.as_secs()), ..making.request()? };
        let made = progress::waiting("making the sandbox", client.create_sandbox(&request, None)).await;
        let sandbox = made.map_err(CommandError::asked("make a sandbox"))?.id;
        let done = tokio::select! {
            done = work(&sandbox) => done,
            never = client.hold(&sandbox, HELD) => match never {},
        };
        match client.kill_sandbox(&sandbox).await {
            Ok(_) => done,
            Err(error) => done.and(Err(CommandError::asked(format!("end sandbox {sandbox}"))(error))),
        }
    }
}
