//! Snapshots that travel: as a file and through blobs that two servers share; and files that are damaged, cut short, foreign or newer.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use belljar_blobs::{S3Bucket, S3Credentials, open_s3};
use belljar_core::{BlobStream, CoreError, CreateSandbox, ForkRequest, ForkSource, ImportSnapshot, TakeSnapshot};
use belljar_host::{Host, HostConfig};
use belljar_image::LayerStore;
use belljar_ports::{Blobs, ParcelError, Runtime};
use belljar_runtime_container::{ContainerConfig, ContainerRuntime};
use belljar_runtime_gvisor::{GvisorConfig, GvisorRuntime};
use belljar_testkit::s3::{self, S3Server};
use belljar_testkit::{Dice, block_on, path, pattern, run, scaled};
use belljar_types::{IsolationClass, ProcessSpec, SandboxId, Scope, Secret, Snapshot, Template, TemplateName, WriteOptions};
use bytes::Bytes;
use futures_util::{TryStreamExt, stream};

use crate::scene::{BOTH, CONTAINER, Ground, Scene, among_others, code, container, of_class, settings};

const TREE: &str = "mkdir -p ~/d/e; echo one > ~/d/one; ln ~/d/one ~/d/hard; ln -s one ~/d/soft; mkfifo ~/d/pipe; printf 'a\\nb' > ~/'d/odd
name'; setfattr -n user.mark -v yes ~/d/one 2>/dev/null; sudo rm -rf /usr/share/doc; sudo mkdir /usr/share/doc; chmod 4755 ~/d/hard; touch -d @1234567890.123456789 ~/d/one";
/// Times of directories are not kept, and their sizes mean nothing.
const LOOK: &str = "cd ~; { find d -type d -printf '%p %m %U %G\\n'; find d ! -type d -printf '%p %y %m %U %G %l %s %T@\\n'; } | sort; cat d/one; \
    ls -A /usr/share/doc | wc -l; stat -c %i d/one d/hard | uniq | wc -l";

/// An interpreter that holds a number in memory, and does as the lines of a pipe say.
const INTERPRETER: &str = "mkfifo /tmp/in && exec python3 -c '
secret = 41
while True:
    for line in open(\"/tmp/in\"):
        exec(line)
        open(\"/tmp/out\", \"w\").write(str(secret))
'";

async fn shell(scene: &Scene, id: &SandboxId, script: &str) -> String {
    let session = scene.service.open(&scene.admin, id).await.unwrap();
    let done = run(session.guest().as_ref(), &["sh", "-c", script]).await;
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

async fn take(scene: &Scene, id: &SandboxId, name: &str) -> Snapshot {
    let request = TakeSnapshot { name: Some(name.parse().unwrap()), ..TakeSnapshot::default() };
    scene.service.take_snapshot(&scene.admin, id, request).await.unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)))
}

async fn fork(scene: &Scene, snapshot: &str) -> SandboxId {
    let made = scene.service.fork(&scene.admin, ForkSource::Snapshot(snapshot), ForkRequest::default()).await.unwrap();
    made.into_iter().next().unwrap().unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error))).id.clone()
}

async fn exported(scene: &Scene, name: &str) -> Vec<u8> {
    let (_, content) = scene.service.export_snapshot(&scene.admin, name).await.unwrap();
    content.try_collect::<Vec<Bytes>>().await.unwrap().concat()
}

fn stream_of(file: &[u8]) -> BlobStream {
    let pieces: Vec<_> = file.chunks(1 << 20).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    Box::pin(stream::iter(pieces))
}

async fn import(scene: &Scene, file: &[u8]) -> Result<Snapshot, CoreError> {
    scene.service.import_snapshot(&scene.admin, stream_of(file), ImportSnapshot::default()).await
}

#[test]
fn a_snapshot_is_the_same_after_it_was_a_file() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let sandbox = scene.container().await;
        shell(&scene, &sandbox.id, TREE).await;
        let before = shell(&scene, &sandbox.id, LOOK).await;
        take(&scene, &sandbox.id, "travels").await;
        scene.kill([&sandbox.id]).await;
        let file = exported(&scene, "travels").await;
        scene.service.remove_snapshot(&scene.admin, "travels").await.unwrap();
        let again = import(&scene, &file).await.unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)));
        assert_eq!(again.name.as_ref().unwrap().as_str(), "travels");
        let fork = fork(&scene, "travels").await;
        assert_eq!(shell(&scene, &fork, LOOK).await, before);
        scene.kill([&fork]).await;
        let stranger = scene.caller("stranger", &[Scope::Use, Scope::Read]).await;
        assert_eq!(code(scene.service.export_snapshot(&stranger, "travels").await.map(drop)), "snapshot_not_found");
        scene.service.remove_snapshot(&scene.admin, again.id.as_str()).await.unwrap();
    });
}

#[test]
fn what_is_damaged_cut_short_foreign_or_newer_is_refused_and_leaves_nothing() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let sandbox = scene.create(CreateSandbox { template: Some(small_template(&scene)), ..container() }).await;
        let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
        let content = Box::pin(stream::iter([Ok(Bytes::from(pattern(300_000)))]));
        session.write_file(&path("/tmp/data"), &WriteOptions::default(), content).await.unwrap();
        drop(session);
        take(&scene, &sandbox.id, "travels").await;
        scene.kill([&sandbox.id]).await;
        let good = exported(&scene, "travels").await;
        scene.service.remove_snapshot(&scene.admin, "travels").await.unwrap();
        let mut dice = Dice::new("carrying");
        let mut place = |bound: usize| usize::try_from(dice.below(bound as u64)).unwrap();
        for _try in 0..scaled(12, 100) {
            let mut bad = good.clone();
            // Half of them near the beginning, where the structure is; the rest anywhere.
            let at = if place(2) == 0 { place(8000) } else { place(good.len()) };
            bad[at] ^= 1 << place(8);
            let refused = import(&scene, &bad).await.unwrap_err();
            assert!(matches!(refused, CoreError::Parcel(_)), "byte {at}: {}", belljar_core::chain(&refused));
            assert_eq!(refused.code(), "bad_snapshot_file", "byte {at}: {}", belljar_core::chain(&refused));
        }
        for _try in 0..scaled(6, 40) {
            let length = place(good.len());
            let refused = import(&scene, &good[..length]).await.unwrap_err();
            let told = matches!(refused, CoreError::Parcel(ParcelError::CutShort { .. } | ParcelError::Foreign));
            assert!(told, "cut at {length}: {}", belljar_core::chain(&refused));
        }
        let mut newer = good.clone();
        newer[17] = 2;
        let refused = import(&scene, &newer).await.unwrap_err();
        assert!(matches!(refused, CoreError::Parcel(ParcelError::Newer { found: 2, known: 1 })), "{refused}");
        let foreign = import(&scene, b"\x1f\x8b\x08 something else that is long enough").await.unwrap_err();
        assert!(matches!(foreign, CoreError::Parcel(ParcelError::Foreign)), "{foreign}");
        let longer = import(&scene, &[good.as_slice(), b"x"].concat()).await.unwrap_err();
        assert_eq!(longer.code(), "bad_snapshot_file");
        assert!(scene.service.snapshots(&scene.admin, &Default::default(), None, 10).await.unwrap().snapshots.is_empty());
        let left = scene.lab.second_runtime(IsolationClass::Container).snapshots().await.unwrap();
        assert!(left.iter().all(|record| record.source != sandbox.id), "{left:?}");
        // The good one, after all of these.
        let taken = import(&scene, &good).await.unwrap();
        scene.service.remove_snapshot(&scene.admin, taken.id.as_str()).await.unwrap();
    });
}

/// A template whose snapshots are small: nothing but accounts and places to mount.
fn small_template(scene: &Scene) -> TemplateName {
    let tree = tempfile::tempdir().unwrap();
    for directory in ["proc", "sys", "dev", "tmp", "run", ".belljar", "etc", "root", "home/user", "usr/bin", "usr/local/bin"] {
        std::fs::create_dir_all(tree.path().join(directory)).unwrap();
    }
    let base = scene.lab.host.layer_directory(&scene.lab.template.layers[0]);
    for file in ["etc/passwd", "etc/group"] {
        std::fs::copy(base.join(file), tree.path().join(file)).unwrap();
    }
    std::fs::set_permissions(tree.path().join("tmp"), PermissionsExt::from_mode(0o1777)).unwrap();
    let layers = LayerStore::open(scene.lab.host.pool_directory()).unwrap();
    let layer = layers.import_tree(tree.path(), "a small tree").unwrap();
    let name: TemplateName = "small".parse().unwrap();
    layers.put_template(&Template { name: name.clone(), layers: vec![layer.digest], ..scene.lab.template.clone() }).unwrap();
    name
}

/// Another server: its own data directory, store and engines; the same blobs.
struct Elsewhere {
    scene: Scene,
    host: Arc<Host>,
    _directory: tempfile::TempDir,
}

async fn elsewhere(scene: &Scene, blobs: Arc<dyn Blobs>) -> Elsewhere {
    let directory = tempfile::tempdir_in(&scene.lab.data_dir).unwrap();
    let config = HostConfig { pool_bytes: 8 << 30, closed_slots: 1, ..HostConfig::new(directory.path().join("data")) };
    let host = Host::open(config).await.unwrap();
    let agent = scene.lab.host.layer_directory(&scene.lab.host.agent_layer().unwrap()).join(".belljar/guest");
    host.set_agent_layer(LayerStore::open(host.pool_directory()).unwrap().agent_layer(&agent).unwrap());
    let engines: Vec<Arc<dyn Runtime>> = vec![
        Arc::new(ContainerRuntime::new(Arc::clone(&host), ContainerConfig::default())),
        Arc::new(GvisorRuntime::new(Arc::clone(&host), GvisorConfig::default())),
    ];
    let ground = Ground { host: Arc::clone(&host), data_dir: directory.path().join("data"), engines, blobs };
    let scene = Scene::on(ground, settings(), tempfile::tempdir().unwrap()).await;
    Elsewhere { scene, host, _directory: directory }
}

fn bucket(server: &S3Server, uploads: std::path::PathBuf) -> S3Bucket {
    S3Bucket {
        endpoint: Some(server.endpoint()),
        region: s3::REGION.to_owned(),
        bucket: s3::BUCKET.to_owned(),
        credentials: S3Credentials { access_key_id: s3::ACCESS_KEY.to_owned(), secret_access_key: Secret::new(s3::SECRET_KEY.to_owned()) },
        uploads,
    }
}

#[test]
fn a_pushed_snapshot_goes_on_on_another_server_with_the_same_blobs() {
    block_on(async {
        let _turn = among_others().await;
        let home = tempfile::tempdir().unwrap();
        let server = S3Server::start(&home.path().join("bucket"), 1000).await.unwrap();
        let here: Arc<dyn Blobs> = Arc::new(open_s3(bucket(&server, home.path().join("here"))).await.unwrap());
        let there: Arc<dyn Blobs> = Arc::new(open_s3(bucket(&server, home.path().join("there"))).await.unwrap());
        let scene = Scene::sharing(BOTH, here).await;
        let limits = belljar_core::PartialLimits { memory_bytes: Some(256 << 20), ..Default::default() };
        let parent = scene.create(CreateSandbox { limits, ..of_class(IsolationClass::Gvisor) }).await;
        scene.service.open(&scene.admin, &parent.id).await.unwrap().start(&ProcessSpec::new(["sh", "-c", INTERPRETER])).await.unwrap();
        shell(
            &scene,
            &parent.id,
            "until [ -p /tmp/in ]; do sleep 0.1; done; echo 'secret += 1' > /tmp/in; until [ -s /tmp/out ]; do sleep 0.1; done",
        )
        .await;
        take(&scene, &parent.id, "Warm").await;
        let files = scene.container().await;
        shell(&scene, &files.id, TREE).await;
        let tree = shell(&scene, &files.id, LOOK).await;
        take(&scene, &files.id, "files").await;
        scene.kill([&parent.id, &files.id]).await;
        for name in ["Warm", "files"] {
            let pushed =
                scene.service.push_snapshot(&scene.admin, name).await.unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)));
            assert_eq!(pushed.name, name);
        }
        assert_eq!(server.uploads_under_way(), 0);

        let other = elsewhere(&scene, there).await;
        assert_eq!(
            code(other.scene.service.pull_snapshot(&other.scene.admin, "nothing", ImportSnapshot::default()).await),
            "snapshot_not_found"
        );
        let stranger = other.scene.caller("stranger", &[Scope::Use, Scope::Read]).await;
        assert_eq!(code(other.scene.service.pull_snapshot(&stranger, "Warm", ImportSnapshot::default()).await), "snapshot_not_found");
        for name in ["Warm", "files"] {
            let pulled = other.scene.service.pull_snapshot(&other.scene.admin, name, ImportSnapshot::default()).await;
            pulled.unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)));
        }
        let warm = fork(&other.scene, "Warm").await;
        let said = shell(
            &other.scene,
            &warm,
            "rm /tmp/out; echo 'secret += 1' > /tmp/in; until [ -s /tmp/out ]; do sleep 0.1; done; cat /tmp/out",
        )
        .await;
        assert_eq!(said, "43", "the interpreter goes on with what it had in memory on the other server");
        let cold = fork(&other.scene, "files").await;
        assert_eq!(shell(&other.scene, &cold, LOOK).await, tree);
        other.scene.kill([&warm, &cold]).await;

        // A blob that somebody changed is not taken in.
        let parcel = server.keys().into_iter().find(|key| key.starts_with("snapshots/")).unwrap();
        let mut bytes = std::fs::read(server.file(&parcel)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(server.file(&parcel), bytes).unwrap();
        let mut refused = 0;
        for name in ["Warm", "files"] {
            refused += usize::from(other.scene.service.pull_snapshot(&other.scene.admin, name, ImportSnapshot::default()).await.is_err());
        }
        assert_eq!(refused, 1);
        other.scene.service.stop(std::time::Duration::from_secs(5)).await;
        other.host.close().await.unwrap();
    });
}

#[test]
fn only_an_administrator_brings_memory_in_a_file() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        let sandbox = scene.create(of_class(IsolationClass::Gvisor)).await;
        take(&scene, &sandbox.id, "warm").await;
        scene.kill([&sandbox.id]).await;
        let file = exported(&scene, "warm").await;
        let user = scene.caller("user", &[Scope::Use, Scope::Read]).await;
        let refused = scene.service.import_snapshot(&user, stream_of(&file), ImportSnapshot::default()).await;
        assert_eq!(code(refused), "forbidden");
        // As if it came from a machine with another engine: the text stands in the manifest, whose digest is made right again.
        let other = with_manifest(&file, |manifest| manifest["memory"]["engine"] = "runsc 20990101.0".into());
        let refused = import(&scene, &other).await.unwrap_err();
        assert_eq!(refused.code(), "memory_cannot_go_on", "{refused}");
        assert!(refused.to_string().contains("runsc 20990101.0"), "{refused}");
        let other = with_manifest(&file, |manifest| manifest["memory"]["processor"].as_array_mut().unwrap().push("quantum".into()));
        assert!(import(&scene, &other).await.unwrap_err().to_string().contains("quantum"));
        let taken = import(&scene, &file).await.unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)));
        let fork = fork(&scene, taken.id.as_str()).await;
        assert_eq!(shell(&scene, &fork, "echo alive").await, "alive");
        scene.kill([&fork]).await;
    });
}

/// The same file with another manifest, as somebody would write it who knows the format.
fn with_manifest(file: &[u8], change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    const HEAD: usize = 17 + 4 + 4 + "manifest".len();
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let length = number(HEAD);
    let mut manifest: serde_json::Value = serde_json::from_slice(&file[HEAD + 4..HEAD + 4 + length]).unwrap();
    change(&mut manifest);
    let text = serde_json::to_vec(&manifest).unwrap();
    let mut hash = Sha256::new();
    hash.update("manifest");
    hash.update(&text);
    let mut out = file[..HEAD].to_vec();
    out.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
    out.extend(text);
    out.extend(0u32.to_le_bytes());
    out.extend(hash.finalize());
    out.extend(&file[HEAD + 4 + length + 4 + 32..]);
    out
}
