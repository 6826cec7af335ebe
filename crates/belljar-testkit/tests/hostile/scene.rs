//! Honest sandboxes that must go on working, a host that puts a rogue in the agent's place from then on, and a count of what was there.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use belljar_image::LayerStore;
use belljar_ports::Runtime;
use belljar_runtime_container::{ContainerConfig, ContainerRuntime};
use belljar_runtime_gvisor::{GvisorConfig, GvisorRuntime};
use belljar_testkit::{Census, Lab, Sandbox, run};
use belljar_types::{IsolationClass, LayerDigest, SandboxSpec};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// Long enough for a machine under load, short enough to wait for in a test.
const START_LIMIT: Duration = Duration::from_secs(20);
/// What a host may grow by; a rogue sends gigabytes if it is let.
const GROWTH: u64 = 64 << 20;
/// What pools and lazy connections may hold more than at the first count.
const POOLED: &[(&str, usize)] = &[("open files of this process", 24)];

/// One test's turn.
pub(crate) struct Scene {
    pub(crate) lab: &'static Lab,
    /// Gives up sooner than the laboratory's own.
    pub(crate) runtime: Arc<dyn Runtime>,
    honest: Sandbox,
    rogue: LayerDigest,
    before: Census,
    resident: u64,
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    /// Waits for its turn, makes an honest sandbox, and puts the rogue in the place of every agent after it.
    pub(crate) async fn set(class: IsolationClass) -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        static LAYERS: OnceCell<(LayerDigest, LayerDigest)> = OnceCell::const_new();
        let turn = TURN.lock().await;
        let lab = Lab::get().await;
        let runtime: Arc<dyn Runtime> = match class {
            IsolationClass::Container => {
                Arc::new(ContainerRuntime::new(Arc::clone(&lab.host), ContainerConfig { agent_deadline: START_LIMIT / 2 }))
            }
            _ => Arc::new(GvisorRuntime::new(Arc::clone(&lab.host), GvisorConfig { start_limit: START_LIMIT, ..GvisorConfig::default() })),
        };
        let (agent, rogue) = LAYERS.get_or_init(|| async { import(lab) }).await.clone();
        lab.host.set_agent_layer(agent);
        let honest = lab.sandbox(class).await;
        // Behind gVisor the first commands bring processes that stay for the next ones.
        for _ in 0..4 {
            assert_eq!(run(&*honest.guest, &["/bin/echo", "alive"]).await.text(), "alive");
        }
        // Pools and caches are filled first; what they keep is not the rogue's doing. As many at once as there will be rogues empty the stock of
        // slots below its half, so that it is made full again and cannot grow any more.
        let one = || lab.sandbox(IsolationClass::Container);
        let (first, second, third) = tokio::join!(one(), one(), one());
        for sandbox in [first, second, third] {
            assert_eq!(run(&*sandbox.guest, &["/bin/echo", "alive"]).await.text(), "alive");
            sandbox.destroy().await;
        }
        lab.host.settle().await;
        let before = Census::take(&lab.scope());
        Self { lab, runtime, honest, rogue, before, resident: resident_bytes(), _turn: turn }
    }

    /// A sandbox whose agent is a rogue of this kind.
    pub(crate) fn spec(&self, role: &str) -> SandboxSpec {
        self.lab.host.set_agent_layer(self.rogue.clone());
        let mut spec = self.lab.spec();
        spec.env.insert("ROGUE".into(), role.into());
        spec.limits.memory_bytes = 256 << 20;
        spec.limits.pids = 64;
        spec
    }

    /// Others go on working.
    pub(crate) async fn others_work(&self) {
        assert_eq!(run(&*self.honest.guest, &["/bin/echo", "alive"]).await.text(), "alive");
    }

    /// The host has not grown.
    pub(crate) fn assert_small(&self, what: &str) {
        let now = resident_bytes();
        assert!(now < self.resident + GROWTH, "{what}: {} KiB resident before, {} KiB now", self.resident >> 10, now >> 10);
    }

    /// All is as it was before the rogues came.
    pub(crate) async fn assert_nothing_left(self) {
        self.others_work().await;
        self.lab.host.settle().await;
        assert_eq!(Census::settle(&self.before, &self.lab.scope(), POOLED).await, Ok(()));
        self.honest.destroy().await;
    }
}

/// The layers of the agent and of the rogue.
fn import(lab: &Lab) -> (LayerDigest, LayerDigest) {
    let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rogue");
    let program = tree.join(".belljar/guest");
    std::fs::create_dir_all(tree.join(".belljar")).expect("a directory can be made");
    std::fs::write(&program, include_str!("rogue.py")).expect("the rogue can be written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("and made a program");
    let store = LayerStore::open(lab.host.pool_directory()).expect("the store opens");
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest/belljar-guest");
    let agent = std::env::var_os("BELLJAR_GUEST").map_or(built, PathBuf::from);
    let agent = store.agent_layer(&agent).expect("the agent is a layer already");
    (agent, store.import_tree(&tree, "rogue").expect("the rogue becomes a layer").digest)
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("the kernel says how big this process is");
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("in pages");
    pages * 4096
}
