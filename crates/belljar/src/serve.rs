//! `belljar serve`: the server. Its story: read the configuration, open the host and the store, bring both together, make the first key,
//! listen; and when told to stop, let work finish. Sandboxes outlive it, and the next start takes them over.

mod files;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use belljar_api::ApiState;
use belljar_core::{Parts, Service};
use belljar_dialect_daytona::DaytonaState;
use belljar_dialect_e2b::E2bState;
use belljar_http::{Front, Gate, GuestLog, Listen, Metrics, PortTokens, Rate, ServeLimits, Server, TlsFiles};
use belljar_webhook::{Postman, Reach};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::{Config, ServerConfig};
use crate::telemetry::Telemetry;
use crate::{Failure, compose, outlet};

pub(crate) use files::{FIRST_KEY, ServerFile};

/// Run the server
///
/// It listens on 127.0.0.1:7070 unless told otherwise. At its first start it makes an administrator's key and keeps it in the file
/// `first-key` of the data directory, readable by root only; `eval "$(belljar env)"` sets the variables that every other command reads.
///
/// SIGTERM lets requests under way finish and leaves sandboxes running; the next start takes them over, and so it does after a crash.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar serve --listen 127.0.0.1:7070\n\nAll settings: docs/reference/configuration.md")]
pub(crate) struct Arguments {
    /// The configuration file [default: /etc/belljar/belljar.toml, if it is there]
    #[arg(long, env = "BELLJAR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where layers, sandboxes and the store are kept [default: /var/lib/belljar]
    #[arg(long, env = "BELLJAR_DATA_DIR", value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
    /// The address to listen on [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// The static agent that is put into sandboxes; looked for beside this program when not given
    #[arg(long, env = "BELLJAR_GUEST", value_name = "FILE")]
    guest: Option<PathBuf>,
    /// Let sandboxes share the host's kernel (the container class)
    #[arg(long)]
    allow_shared_kernel: bool,
}

impl Arguments {
    fn config(self) -> Result<Config, Failure> {
        let mut config = Config::load(self.config.as_deref())?;
        config.data_dir = self.data_dir.or(config.data_dir);
        config.server.listen = self.listen.unwrap_or(config.server.listen);
        config.host.guest = self.guest.or(config.host.guest);
        config.sandboxes.allow_shared_kernel |= self.allow_shared_kernel;
        Ok(config)
    }
}

/// Serves until told to stop.
pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let config = arguments.config()?;
    let (service_config, sinks) = (config.service()?, config.audit.sinks()?);
    let _telemetry = Telemetry::start(&config.log)?;
    let data_dir = config.data_dir();
    // Sockets first: a second server must fail before it touches anything.
    let server = Server::bind(&[listen(&config.server)?], limits(&config.server)).await?;
    let machine = compose::open(&data_dir, &config.host, config.network.filtered_slots()).await?;
    let vault = Arc::new(crate::secret::vault(&data_dir)?);
    // Without it a policy that has anything to say about the network is refused by name.
    let egress: Option<Arc<dyn belljar_ports::Egress>> = match config.network.filtered_slots() {
        0 => None,
        _ => Some(outlet::open(&machine.host, &config.network, Arc::clone(&service_config.policies.operator), Arc::clone(&vault))?),
    };
    let blobs = compose::blobs(&data_dir, &config.blobs).await?;
    machine.host.set_brokers(Arc::new(crate::broker::Starter::new(config.buckets.clone(), &data_dir)));
    let store = belljar_store::open(&config.store_url()).await?;
    let audit: Arc<dyn belljar_ports::Audit> = Arc::new(belljar_audit::AuditLog::open(&data_dir.join("audit"))?);
    belljar_sinks::follow(&audit, sinks, &data_dir.join("audit-sinks"))?;
    let parts = Parts {
        store,
        engines: machine.engines,
        templates: machine.templates,
        volumes: Arc::new(machine.host.volumes()),
        blobs,
        parcels: machine.parcels,
        capacity: machine.capacity,
        tallies: Arc::new(belljar_host::TallyFile::open(&data_dir)?),
        courier: Arc::new(Postman::new(files::webhook_key(&data_dir)?, reach(&config))?),
        tapes: tapes(&config, &data_dir),
        audit,
        egress,
        secrets: Some(vault),
        config: service_config,
    };
    let service = Service::start(parts).await?;
    make_first_key(&service, &data_dir).await?;
    let metrics = Arc::new(Metrics::default());
    let router = router(&config.server, &service, &metrics, &data_dir)?;
    let file = ServerFile::write(&data_dir, &url(&config.server, &server))?;
    info!(url = file.url, data_dir = %data_dir.display(), version = env!("CARGO_PKG_VERSION"), "belljar serves");
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve(router, metrics, stop.clone()));
    let code = wait_for_the_end(&service).await?;
    stop.cancel();
    service.stop(config.server.drain.get()).await;
    serving.await?;
    file.remove();
    info!("belljar stopped; sandboxes run on, and the next start takes them over");
    Ok(code)
}

/// Where messages to webhooks may go.
fn reach(config: &Config) -> Reach {
    Reach { reachable: config.webhooks.reachable.clone(), plain_http: config.webhooks.plain_http }
}

/// Where terminals are recorded, if the operator wants them to be.
fn tapes(config: &Config, data_dir: &std::path::Path) -> Option<Arc<dyn belljar_ports::Tapes>> {
    config.audit.record_terminals.then(|| Arc::new(belljar_audit::TapeDirectory::new(&data_dir.join("recordings"))) as _)
}

async fn wait_for_the_end(service: &Service) -> Result<ExitCode, Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => info!("told to stop by SIGTERM"),
        _ = interrupt.recv() => info!("told to stop by SIGINT"),
        fenced = service.fenced() => {
            warn!(error = %fenced, "another server has this store now");
            return Ok(ExitCode::from(3));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The secret is on disk before the key is in the store: an end between the two is made good by the next start.
async fn make_first_key(service: &Service, data_dir: &std::path::Path) -> Result<(), Failure> {
    if service.has_keys().await? {
        return Ok(());
    }
    let secret = files::first_key(data_dir)?;
    if service.bootstrap(&secret).await? {
        info!(file = %data_dir.join(FIRST_KEY).display(), "made the first key");
    }
    Ok(())
}

fn router(
    config: &ServerConfig,
    service: &Arc<Service>,
    metrics: &Arc<Metrics>,
    data_dir: &std::path::Path,
) -> Result<axum::Router, Failure> {
    let rate = config.requests_per_second.map(|per_second| Rate {
        per_second: f64::from(per_second),
        burst: f64::from(config.request_burst.unwrap_or(per_second.saturating_mul(2))),
    });
    let gate = Gate::new(Arc::clone(service), rate);
    let port_tokens = Arc::new(PortTokens::new(files::port_token_secret(data_dir)?));
    let state = ApiState {
        service: Arc::clone(service),
        gate: Arc::clone(&gate),
        port_tokens: Arc::clone(&port_tokens),
        metrics: Arc::clone(metrics),
        domain: config.domain.clone(),
        upload_directory: files::upload_directory(data_dir)?,
        max_upload_bytes: config.max_upload.get(),
    };
    let front = Arc::new(Front {
        service: Arc::clone(service),
        gate,
        port_tokens,
        domain: config.domain.clone(),
        router_takes_ports: true,
        metrics: Arc::clone(metrics),
        guest_log: GuestLog::default(),
    });
    let e2b = E2bState::new(Arc::clone(&front));
    let daytona = DaytonaState::new(&front);
    let routes = belljar_api::router(state);
    let routes = routes.merge(belljar_dialect_e2b::router(e2b.clone())).merge(belljar_dialect_daytona::router(daytona.clone()));
    Ok(front.around_with(routes, |routes| belljar_dialect_daytona::attend(daytona, belljar_dialect_e2b::attend(e2b, routes))))
}

fn listen(config: &ServerConfig) -> Result<Listen, Failure> {
    let tls = match (&config.tls_certificate, &config.tls_key) {
        (Some(certificates), Some(key)) => Some(TlsFiles { certificates: certificates.clone(), key: key.clone() }),
        (None, None) => None,
        _ => return Err("server.tls_certificate and server.tls_key belong together: give both or none".into()),
    };
    Ok(Listen { address: config.listen, tls, behind_proxy: config.behind_proxy })
}

fn limits(config: &ServerConfig) -> ServeLimits {
    ServeLimits { connections: config.connections, drain: config.drain.get(), ..ServeLimits::default() }
}

fn url(config: &ServerConfig, server: &Server) -> String {
    let scheme = if config.tls_certificate.is_some() { "https" } else { "http" };
    server.addresses().first().map_or_else(String::new, |address| format!("{scheme}://{}", reachable(*address)))
}

/// "Everywhere" is an address to listen on, not one to call.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
        _ => address,
    }
}
