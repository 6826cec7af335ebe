//! The laboratory itself: opened once per process, on a data directory of its own.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use belljar_host::{Host, HostConfig, HostError};
use belljar_image::{ImageError, LayerStore};
use belljar_ports::{Guest, Runtime, RuntimeError};
use belljar_runtime_container::{ContainerConfig, ContainerRuntime};
use belljar_runtime_gvisor::{GvisorConfig, GvisorRuntime};
use belljar_types::{Execution, IsolationClass, SandboxId, SandboxSpec, Template, chain};
use tokio::sync::OnceCell;

use crate::Scope;

/// Why there is no laboratory.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The static agent was not built.
    #[error("there is no agent at {path}: run `make guest`, or set BELLJAR_GUEST")]
    NoAgent {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The host would not open.
    #[error("open the host")]
    Host(#[from] HostError),
    /// The template could not be made.
    #[error("make the template")]
    Image(#[from] ImageError),
}

/// A host with its engines and the base template.
pub struct Lab {
    /// The host.
    pub host: Arc<Host>,
    /// Where it keeps everything.
    pub data_dir: PathBuf,
    /// The template sandboxes are made from.
    pub template: Template,
    container: Arc<ContainerRuntime>,
    gvisor: Arc<GvisorRuntime>,
}

/// A sandbox that runs; [`Sandbox::destroy`] ends it.
pub struct Sandbox {
    /// Its engine.
    pub runtime: Arc<dyn Runtime>,
    /// Which run this is.
    pub execution: Execution,
    /// Its agent.
    pub guest: Arc<dyn Guest>,
}

impl Sandbox {
    /// Ends it and removes every trace.
    pub async fn destroy(self) {
        self.runtime.destroy(&self.execution.sandbox).await.expect("a sandbox can be destroyed");
    }
}

/// Runs a test's future on the process's one runtime: the host's own tasks live there, and outlive any one test.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME
        .get_or_init(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime can be made"))
        .block_on(future)
}

impl Lab {
    /// The laboratory of this process.
    pub async fn get() -> &'static Self {
        static LAB: OnceCell<Lab> = OnceCell::const_new();
        let open = || async {
            let lab = Self::open().await.unwrap_or_else(|error| panic!("{}", chain(&error)));
            lab.clear().await.unwrap_or_else(|error| panic!("clear the laboratory: {}", chain(&error)));
            lab
        };
        LAB.get_or_init(open).await
    }

    /// Destroys every sandbox and snapshot: those of tests that failed, or of a maker that was killed.
    pub async fn clear(&self) -> Result<(), RuntimeError> {
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let runtime = self.runtime(class);
            for found in runtime.inventory().await? {
                runtime.destroy(&found.id).await?;
            }
            for snapshot in runtime.snapshots().await? {
                runtime.remove_snapshot(&snapshot.id).await?;
            }
        }
        self.host.settle().await;
        Ok(())
    }

    /// Opens the host on `.cache/lab` of the repository, with the base template in it.
    pub async fn open() -> Result<Self, LabError> {
        let root = repository();
        let data_dir = std::env::var_os("BELLJAR_LAB").map_or_else(|| root.join(".cache/lab"), PathBuf::from);
        let agent = agent()?;
        let config = HostConfig { pool_bytes: 40 << 30, closed_slots: 4, open_slots: 1, filtered_slots: 1, ..HostConfig::new(&data_dir) };
        let recipe = root.join("templates/base.toml");
        let ensure =
            move |store: &LayerStore| belljar_image::ensure_recipe(store, &recipe, &belljar_image::PlainProgress::new(std::io::stderr()));
        Self::furnish(config, &agent, ensure).await
    }

    /// Opens a host and makes its template.
    pub(crate) async fn furnish(
        config: HostConfig,
        agent: &Path,
        template: impl FnOnce(&LayerStore) -> Result<Template, ImageError> + Send + 'static,
    ) -> Result<Self, LabError> {
        let data_dir = config.data_dir.clone();
        let host = Host::open(config).await?;
        let store = LayerStore::open(host.pool_directory()).map_err(ImageError::from)?;
        host.set_agent_layer(store.agent_layer(agent)?);
        let template = tokio::task::spawn_blocking(move || template(&store)).await.expect("making a template does not panic")?;
        let container = Arc::new(ContainerRuntime::new(Arc::clone(&host), ContainerConfig::default()));
        let gvisor = Arc::new(GvisorRuntime::new(Arc::clone(&host), GvisorConfig::default()));
        Ok(Self { host, data_dir, template, container, gvisor })
    }

    /// The engine of a class.
    pub fn runtime(&self, class: IsolationClass) -> Arc<dyn Runtime> {
        match class {
            IsolationClass::Container => Arc::clone(&self.container) as Arc<dyn Runtime>,
            IsolationClass::Gvisor => Arc::clone(&self.gvisor) as Arc<dyn Runtime>,
            other => panic!("the laboratory has no engine for {other}"),
        }
    }

    /// Another engine object on the same host, as a restarted server would have: it has made nothing itself.
    pub fn second_runtime(&self, class: IsolationClass) -> Arc<dyn Runtime> {
        match class {
            IsolationClass::Container => Arc::new(ContainerRuntime::new(Arc::clone(&self.host), ContainerConfig::default())),
            IsolationClass::Gvisor => Arc::new(GvisorRuntime::new(Arc::clone(&self.host), GvisorConfig::default())),
            other => panic!("the laboratory has no engine for {other}"),
        }
    }

    /// The host's numbers of all processes that belong to a sandbox.
    pub fn host_pids(&self, id: &SandboxId) -> Vec<u32> {
        host_pids(id)
    }

    /// Whose things a census counts.
    pub fn scope(&self) -> Scope {
        Scope { instance: self.host.instance().to_owned(), data_dir: self.data_dir.clone() }
    }

    /// A spec on the base template.
    pub fn spec(&self) -> SandboxSpec {
        SandboxSpec { defaults: self.template.defaults.clone(), ..SandboxSpec::on(self.template.layers.clone()) }
    }

    /// Makes a sandbox.
    pub async fn create(&self, class: IsolationClass, spec: &SandboxSpec) -> Result<Sandbox, RuntimeError> {
        let runtime = self.runtime(class);
        let execution = runtime.create(spec).await?;
        let guest = runtime.guest(&spec.id).await?;
        Ok(Sandbox { runtime, execution, guest })
    }

    /// Makes a sandbox of a class with defaults, or fails the test.
    pub async fn sandbox(&self, class: IsolationClass) -> Sandbox {
        self.create(class, &self.spec()).await.unwrap_or_else(|error| panic!("create a {class} sandbox: {}", chain(&error)))
    }
}

/// The host's numbers of all processes that belong to a sandbox, whoever made it.
pub fn host_pids(id: &SandboxId) -> Vec<u32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|text| text.contains(id.as_str())))
        .collect()
}

/// The agent that was built.
pub(crate) fn agent() -> Result<PathBuf, LabError> {
    let path = std::env::var_os("BELLJAR_GUEST").map_or_else(|| repository().join("target/guest/belljar-guest"), PathBuf::from);
    if path.exists() { Ok(path) } else { Err(LabError::NoAgent { path }) }
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/belljar-testkit is two levels down").to_owned()
}
