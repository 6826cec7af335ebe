//! The sandbox from outside: what it is, and how a person reaches a program in it.

use belljar_types::Invalid;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::Outcome;
use crate::lodgings::Lodgings;

const DEFAULT_MINUTES: u64 = 60;

/// Let a person open a program that listens on a port of the sandbox, such as a web server: gives the address, or the command that makes one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct SharePort {
    /// The port that the program listens on.
    port: u16,
    /// For how many minutes; whoever has the address can use it that long. 60 when left out.
    minutes: Option<u64>,
    /// Another sandbox of this connection, by the id that fork_sandbox gave.
    sandbox: Option<String>,
}

/// Tell what the sandbox is: its id, isolation, limits, network, listening ports, and this connection's forks and checkpoints.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct SandboxInfo {
    /// Another sandbox of this connection, by the id that fork_sandbox gave.
    sandbox: Option<String>,
}

pub(super) async fn share(lodgings: &Lodgings, asked: SharePort) -> Outcome {
    let port = asked.port;
    if port == 0 {
        return Err(Invalid::new("port", "1 to 65535", "0").into());
    }
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    let failed = |error| lodgings.failed(&sandbox, "share the port", error);
    let listening = lodgings.patiently(|| lodgings.client.ports(&sandbox)).await.map_err(failed)?;
    let nobody = if listening.iter().any(|listener| listener.port == port) { "" } else { "\n[nothing listens on it yet]" };
    let seconds = asked.minutes.unwrap_or(DEFAULT_MINUTES).saturating_mul(60);
    let token = lodgings.patiently(|| lodgings.client.port_token(&sandbox, port, seconds)).await.map_err(failed)?;
    let Some(host) = token.host else {
        let command = format!("belljar port {sandbox} {port}");
        return Ok(super::words(format!("The server has no domain for ports. On a machine with belljar and a key: `{command}`{nobody}")));
    };
    let url = lodgings.client.url();
    let (scheme, server) = url.split_once("://").unwrap_or(("https", url));
    let own_port = server.rsplit_once(':').map(|(_, port)| port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    let own_port = own_port.map_or_else(String::new, |port| format!(":{port}"));
    let address = format!("{scheme}://{host}{own_port}/?belljar_token={}", token.token);
    Ok(super::words(format!("{address}\n[until {}; whoever has this address can use it]{nobody}", token.expires_at)))
}

pub(super) async fn info(lodgings: &Lodgings, asked: SandboxInfo) -> Outcome {
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    let failed = |error| lodgings.failed(&sandbox, "look", error);
    let view = lodgings.patiently(|| lodgings.client.sandbox(&sandbox)).await.map_err(failed)?;
    let ports = lodgings.patiently(|| lodgings.client.ports(&sandbox)).await.map_err(failed)?;
    let (others, checkpoints) = lodgings.beside(&sandbox).await.map_err(failed)?;
    let ports: Vec<_> = ports.iter().map(|port| port.port.to_string()).collect();
    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let limits = &view.limits;
    let mebibytes = |bytes: u64| bytes >> 20;
    Ok(super::words(format!(
        "sandbox: {}\nstate: {}\nisolation: {} ({})\ntemplate: {}\ncpu: {} cores\nmemory: {} MiB\ndisk: {} MiB beyond the template\nprocesses: {} at most\n\
         network: {}\nroot: {}\nlistening ports: {}\nother sandboxes of this connection: {}\ncheckpoints: {}",
        view.id,
        view.state,
        view.isolation,
        view.isolation_reason,
        view.template,
        f64::from(limits.cpu_millis) / 1000.0,
        mebibytes(limits.memory_bytes),
        mebibytes(limits.disk_bytes),
        limits.pids,
        view.network,
        view.privilege,
        list(&ports),
        list(&others),
        list(&checkpoints),
    )))
}
