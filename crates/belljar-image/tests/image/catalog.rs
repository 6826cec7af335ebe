//! Templates as core asks for them: by owner, from every source, with sweeps and departures at the worst moments.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use belljar_image::{ArchiveForm, ArchiveLimits, Catalog, CatalogOptions, LayerStore};
use belljar_ports::{BuildLine, TemplateError, TemplateSource, Templates};
use belljar_types::{LayerDigest, ProjectId, Template, TemplateName};
use tokio::sync::mpsc;

use crate::archives::{Archive, Entry};
use crate::images::{Image, archive_files};
use crate::oci::assert_is_sample;
use crate::registry::content;
use crate::registry_server::{Behaviour, Registry};

struct Scene {
    directory: tempfile::TempDir,
    store: LayerStore,
    catalog: Arc<Catalog>,
}

impl Scene {
    fn new() -> Self {
        Self::with(CatalogOptions::default())
    }

    fn with(options: CatalogOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = LayerStore::open(&directory.path().join("pool")).unwrap();
        let catalog = Arc::new(Catalog::new(store.clone(), options));
        Self { directory, store, catalog }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn archive(&self, bytes: &[u8]) -> TemplateSource {
        let path = self.path("archive");
        fs::write(&path, bytes).unwrap();
        TemplateSource::Archive(path)
    }

    async fn make(&self, owner: Option<&str>, name_of: &str, source: TemplateSource) -> Result<Template, TemplateError> {
        let (lines, _) = mpsc::channel(1);
        self.catalog.make(owner.map(project).as_ref(), &name(name_of), source, lines).await
    }

    async fn sweep(&self, keep: &BTreeSet<LayerDigest>, dry_run: bool) -> BTreeSet<LayerDigest> {
        self.catalog.sweep(keep, dry_run).await.unwrap().layers.into_iter().collect()
    }

    fn layers(&self) -> BTreeSet<LayerDigest> {
        self.store.layers().unwrap().into_iter().map(|layer| layer.digest).collect()
    }

    fn staged(&self) -> usize {
        fs::read_dir(self.path("pool/staging")).unwrap().count()
    }
}

fn name(text: &str) -> TemplateName {
    text.parse().unwrap()
}

fn project(text: &str) -> ProjectId {
    text.parse().unwrap()
}

fn root(mark: &str) -> Archive {
    Archive::new().add(Entry::directory("./etc")).add(Entry::file("./etc/mark", mark.as_bytes()))
}

fn none() -> BTreeSet<LayerDigest> {
    BTreeSet::new()
}

#[tokio::test]
async fn a_project_sees_its_own_templates_before_the_servers_and_nobody_elses() {
    let scene = Scene::new();
    let shared = scene.make(None, "base", scene.archive(&root("server").tar())).await.unwrap();
    let server_only = scene.make(None, "tools", scene.archive(&root("tools").tar())).await.unwrap();
    let own = scene.make(Some("alpha"), "base", scene.archive(&root("alpha's own").tar())).await.unwrap();
    scene.make(Some("beta"), "secret", scene.archive(&root("beta").tar())).await.unwrap();
    assert!(scene.path("pool/templates/base.json").is_file() && scene.path("pool/templates/alpha/base.json").is_file());
    let find = async |of: &str, what: &str| scene.catalog.find(&project(of), &name(what)).await.unwrap();
    assert_eq!(find("alpha", "base").await.as_ref(), Some(&own));
    assert_eq!(find("beta", "base").await.as_ref(), Some(&shared));
    assert_eq!(find("alpha", "secret").await, None);
    let listed = scene.catalog.list(&project("alpha")).await.unwrap();
    let seen: Vec<_> = listed.iter().map(|one| (one.owner.as_ref().map(ProjectId::as_str), &one.template)).collect();
    assert_eq!(seen, [(Some("alpha"), &own), (None, &server_only)]);
    let recorded: u64 = own.layers.iter().map(|layer| scene.store.layer(layer).unwrap().unwrap().size).sum();
    assert_eq!(listed[0].bytes, recorded);
    assert!(recorded >= "alpha's own".len() as u64);

    let remove = async |of: Option<&str>, what: &str| scene.catalog.remove(of.map(project).as_ref(), &name(what)).await.unwrap();
    assert!(!remove(Some("beta"), "base").await, "the server's is not beta's to remove");
    assert!(remove(Some("alpha"), "base").await);
    assert!(!remove(Some("alpha"), "base").await);
    assert!(!scene.path("pool/templates/alpha").exists(), "a project without templates leaves no directory");
    assert_eq!(find("alpha", "base").await, Some(shared));
}

#[tokio::test]
async fn archives_are_told_apart_by_their_content() {
    let scene = Scene::new();
    let root = root("plain");
    let mut made = Vec::new();
    for bytes in [root.tar(), root.gzip(), root.zstd()] {
        let template = scene.make(None, "root", scene.archive(&bytes)).await.unwrap();
        assert_eq!(template.origin, "tarball");
        made.push(template.layers);
    }
    assert!(made.iter().all(|layers| *layers == made[0]));
    let image = Image::sample();
    let (layout, saved) = (archive_files(&image.layout("latest")), image.docker_archive("app:1"));
    for (bytes, origin) in [
        (layout.tar(), "oci layout sha256:"),
        (layout.zstd(), "oci layout sha256:"),
        (saved.tar(), "docker archive sha256:"),
        (saved.gzip(), "docker archive sha256:"),
    ] {
        let template = scene.make(None, "image", scene.archive(&bytes)).await.unwrap();
        assert!(template.origin.starts_with(origin), "{}", template.origin);
        assert_is_sample(&scene.store, &template);
    }
    let misleading = Archive::new().add(Entry::directory("etc")).add(Entry::file("manifest.json", b"{}"));
    assert_eq!(scene.make(None, "odd", scene.archive(&misleading.tar())).await.unwrap().origin, "tarball");
    assert_eq!(scene.staged(), 0);
}

#[tokio::test]
async fn what_cannot_be_made_says_why_and_leaves_the_old_one() {
    let scene = Scene::new();
    let before = scene.make(Some("alpha"), "mine", scene.archive(&root("old").tar())).await.unwrap();
    let pipe = scene.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let escaping = Archive::new().add(Entry::file("etc/\u{1b}[2J/../../../x", b""));
    let broken = r#"name = "a""#.to_owned() + "\nsuite = \"bookworm\"\nsources = [\"deb file:///nonexistent bookworm main\"]\n";
    for (source, expected) in [
        (scene.archive(&root("torn").tar()[..700]), "make template mine: "),
        (scene.archive(&escaping.tar()), "\\u{1b}[2J"),
        (TemplateSource::Archive(pipe), "it is not an ordinary file"),
        (TemplateSource::Archive(scene.path("nowhere")), "No such file"),
        (TemplateSource::Image("127.0.0.1:1/a/b".into()), "127.0.0.1:1"),
    ] {
        let error = scene.make(Some("alpha"), "mine", source).await.unwrap_err();
        assert!(matches!(error, TemplateError::Build { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!error.to_string().contains(char::is_control), "{error}");
    }
    let error = scene.make(None, "mine", TemplateSource::Recipe(broken)).await.unwrap_err();
    assert!(error.to_string().contains("mmdebstrap failed while"), "{error}");
    assert_eq!(scene.catalog.find(&project("alpha"), &name("mine")).await.unwrap(), Some(before));
    assert_eq!((scene.store.templates().unwrap().len(), scene.staged()), (0, 0));
}

#[tokio::test]
async fn recipes_get_no_power_over_the_host_from_a_project() {
    let directory = tempfile::tempdir().unwrap();
    let options = CatalogOptions { recipe_directory: Some(directory.path().to_owned()), ..CatalogOptions::default() };
    let (scene, with_directory) = (Scene::new(), Scene::with(options));
    let whole = "name = \"a\"\nsuite = \"bookworm\"\n";
    let steps = format!("{whole}steps = [\"id\"]");
    let sources = format!("{whole}sources = [\"deb http://r.invalid/ x main\"]");
    let certificate = |file: &str| format!("{whole}extra_ca = \"{file}\"");
    for (scene, owner, text, expected) in [
        (&scene, Some("alpha"), steps, "recipe.steps: expected none"),
        (&scene, Some("alpha"), sources, "recipe.sources: expected none"),
        (&scene, Some("alpha"), certificate("/etc/shadow"), "recipe.extra_ca: expected no file"),
        (&scene, None, certificate("ca.crt"), "recipe.extra_ca: expected no file"),
        (&with_directory, Some("alpha"), certificate("ca.crt"), "recipe.extra_ca: expected no file"),
        (&with_directory, None, certificate("../ca.crt"), "recipe.extra_ca: expected a file in the server's"),
        (&with_directory, None, certificate("/etc/shadow"), "recipe.extra_ca: expected a file in the server's"),
        (&scene, None, format!("{whole}pakages = []"), "recipe: expected a recipe as TOML (unknown field `pakages`"),
        (&scene, None, format!("{whole}packages = [\"-o=evil\"]"), "packages: expected names of Debian packages"),
        (&scene, None, "x".repeat(2 << 20), "recipe: expected at most"),
    ] {
        let error = scene.make(owner, "mine", TemplateSource::Recipe(text)).await.unwrap_err();
        let TemplateError::Invalid(invalid) = error else { panic!("{error:?}") };
        assert!(invalid.to_string().starts_with(expected), "{invalid}");
    }
    // Within the directory it is looked for, and found missing only there.
    let error = with_directory.make(None, "mine", TemplateSource::Recipe(certificate("ca.crt"))).await.unwrap_err();
    let expected = format!("cannot read certificates from {}", directory.path().join("ca.crt").display());
    assert!(error.to_string().contains(&expected), "{error}");
    let error = scene.make(None, "mine", TemplateSource::Image("debian".into())).await.unwrap_err();
    assert!(matches!(error, TemplateError::Invalid(_)), "{error:?}");
}

#[tokio::test]
async fn a_sweep_removes_what_nothing_refers_to() {
    let scene = Scene::new();
    let old = scene.make(None, "base", scene.archive(&root("old").tar())).await.unwrap();
    let new = scene.make(None, "base", scene.archive(&root("new").tar())).await.unwrap();
    let own = scene.make(Some("alpha"), "own", scene.archive(&root("own").tar())).await.unwrap();
    let import =
        |mark: &str| scene.store.import_tar(&root(mark).tar()[..], ArchiveForm::RootFilesystem, ArchiveLimits::default(), "test").unwrap();
    let (kept, loose) = (import("kept"), import("loose"));
    let keep = BTreeSet::from([kept.digest.clone()]);
    let expected = BTreeSet::from([old.layers[0].clone(), loose.digest.clone()]);
    let before = scene.layers();
    let trial = scene.catalog.sweep(&keep, true).await.unwrap();
    assert_eq!(trial.bytes, scene.store.layer(&old.layers[0]).unwrap().unwrap().size + loose.size);
    assert_eq!((trial.layers.into_iter().collect::<BTreeSet<_>>(), scene.layers()), (expected.clone(), before.clone()));
    assert_eq!(scene.sweep(&keep, false).await, expected);
    assert_eq!(scene.layers(), before.difference(&expected).cloned().collect());
    for layer in new.layers.iter().chain(&own.layers).chain([&kept.digest]) {
        scene.store.verify(layer).unwrap();
    }
    assert_eq!(scene.sweep(&keep, false).await, none());
    assert!(scene.catalog.remove(Some(&project("alpha")), &name("own")).await.unwrap());
    assert_eq!(scene.sweep(&none(), false).await, BTreeSet::from([own.layers[0].clone(), kept.digest]));
    assert_eq!(scene.staged(), 0);
}

#[tokio::test]
async fn nothing_is_swept_while_a_template_cannot_be_read() {
    let scene = Scene::new();
    scene.make(None, "good", scene.archive(&root("good").tar())).await.unwrap();
    scene.make(Some("alpha"), "bad", scene.archive(&root("bad").tar())).await.unwrap();
    scene.make(Some("alpha"), "good-too", scene.archive(&root("good too").tar())).await.unwrap();
    let file = scene.path("pool/templates/alpha/bad.json");
    fs::write(&file, b"{\"name\": ").unwrap();
    let before = scene.layers();
    for dry_run in [true, false] {
        let error = scene.catalog.sweep(&none(), dry_run).await.unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause, format!("cannot read the template file {}; mend or remove it", file.display()));
    }
    assert_eq!(scene.layers(), before);
    let listed = scene.catalog.list(&project("alpha")).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.template.name.as_str()).collect::<Vec<_>>(), ["good", "good-too"]);
    assert!(matches!(scene.catalog.find(&project("alpha"), &name("bad")).await, Err(TemplateError::Storage { .. })));
    assert!(scene.catalog.remove(Some(&project("alpha")), &name("bad")).await.unwrap());
    assert_eq!(scene.sweep(&none(), false).await.len(), 1);
}

/// A registry that keeps the last layer of the sample image back until told otherwise.
fn gated() -> (Registry, std::sync::mpsc::Sender<()>) {
    let (open, gate) = std::sync::mpsc::channel();
    (Registry::start(Behaviour { content: content(), gate: Some((last_layer(), gate)), ..Behaviour::default() }), open)
}

async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_spares_the_layers_of_a_template_that_is_being_made() {
    let scene = Scene::new();
    let (registry, open) = gated();
    let source = TemplateSource::Image(format!("{}/team/app:v1", registry.address));
    // One layer is found, not made: it was there before and nothing refers to it.
    let base = Image::sample().layers[0].0.tar();
    let known = scene.store.import_tar(&base[..], ArchiveForm::OciLayer, ArchiveLimits::default(), "test").unwrap();
    let (lines, mut told) = mpsc::channel(100);
    let (owner, made_name) = (project("alpha"), name("pulled"));
    let make = scene.catalog.make(Some(&owner), &made_name, source, lines);
    let disturb = async {
        until(|| registry.saw("blobs/") == 4).await;
        let before = scene.layers();
        assert!(before.contains(&known.digest) && before.len() == 2);
        assert_eq!(scene.sweep(&none(), true).await, none());
        assert_eq!(scene.sweep(&none(), false).await, none());
        assert_eq!(scene.layers(), before);
        let loose = scene.store.import_tar(&root("loose").tar()[..], ArchiveForm::RootFilesystem, ArchiveLimits::default(), "test");
        assert_eq!(scene.sweep(&none(), false).await, BTreeSet::from([loose.unwrap().digest]), "others go as ever");
        open.send(()).unwrap();
    };
    let (made, ()) = tokio::join!(make, disturb);
    let template = made.unwrap();
    assert_is_sample(&scene.store, &template);
    let told: Vec<String> = std::iter::from_fn(|| told.try_recv().ok().map(|BuildLine { text }| text)).collect();
    assert!(told.iter().any(|line| line == "layer 3 of 3"), "{told:?}");
    assert!(scene.catalog.remove(Some(&owner), &made_name).await.unwrap());
    assert_eq!(scene.sweep(&none(), false).await.len(), 4, "made and let go, they are rubbish like any other");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_goes_away_leaves_nothing_and_holds_nobody_up() {
    let scene = Scene::new();
    let (registry, open) = gated();
    let source = TemplateSource::Image(format!("{}/team/app:v1", registry.address));
    let (catalog, abandoned) = (Arc::clone(&scene.catalog), source.clone());
    let make = tokio::spawn(async move { catalog.make(None, &name("pulled"), abandoned, mpsc::channel(1).0).await });
    until(|| registry.saw("blobs/") == 4).await;
    assert!(scene.staged() > 0);
    make.abort();
    assert!(make.await.unwrap_err().is_cancelled());
    open.send(()).unwrap();
    // The next one waits until the first has really ended.
    let other = scene.make(None, "pulled", scene.archive(&root("other").tar())).await.unwrap();
    assert_eq!(scene.staged(), 0);
    assert_eq!(scene.store.templates().unwrap(), [other]);
    assert_eq!(scene.sweep(&none(), false).await.len(), 2, "the layers it had made are let go");
}

#[tokio::test(flavor = "multi_thread")]
async fn makes_of_one_name_take_turns_and_of_others_do_not() {
    let scene = Scene::new();
    let (registry, open) = gated();
    let source = TemplateSource::Image(format!("{}/team/app:v1", registry.address));
    let first = scene.make(Some("alpha"), "pulled", source.clone());
    let second = async {
        until(|| registry.saw("blobs/") == 4).await;
        scene.make(Some("alpha"), "pulled", source.clone()).await
    };
    let third = async {
        until(|| registry.saw("blobs/") == 4).await;
        scene.make(Some("beta"), "pulled", scene.archive(&root("beta's").tar())).await.unwrap();
        open.send(()).unwrap();
    };
    let (first, second, ()) = tokio::join!(first, second, third);
    assert_eq!(first.unwrap().layers, second.unwrap().layers);
    let requests = registry.requests.lock().unwrap();
    let got_last = requests.iter().rposition(|request| request.contains("blobs/") && request.contains(&last_layer())).unwrap();
    let manifests: Vec<usize> =
        requests.iter().enumerate().filter(|(_, request)| request.contains("manifests/v1")).map(|(at, _)| at).collect();
    assert!(manifests.len() == 2 && manifests[1] > got_last, "{requests:?}");
}

fn last_layer() -> String {
    let (blobs, manifest) = Image::sample().blobs();
    let manifest: serde_json::Value = serde_json::from_slice(&blobs[&manifest]).unwrap();
    manifest["layers"][2]["digest"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn makes_removals_and_sweeps_at_once_never_lose_a_layer_in_use() {
    let scene = Arc::new(Scene::new());
    // Few different contents, so that makers keep finding what sweeps are about to remove.
    let sources: Vec<TemplateSource> = (0..3)
        .map(|number| {
            let path = scene.path(&format!("{number}.tar"));
            fs::write(&path, root(&format!("content {number}")).tar()).unwrap();
            TemplateSource::Archive(path)
        })
        .collect();
    let makers = (0..4).map(|maker| {
        let (scene, sources) = (Arc::clone(&scene), sources.clone());
        tokio::spawn(async move {
            let owner = format!("p{maker}");
            for round in 0..25 {
                let template = scene.make(Some(&owner), "mine", sources[(maker + round) % 3].clone()).await.unwrap();
                for layer in &template.layers {
                    scene.store.verify(layer).unwrap();
                }
                assert!(scene.catalog.remove(Some(&project(&owner)), &name("mine")).await.unwrap());
            }
        })
    });
    let makers: Vec<_> = makers.collect();
    let mut swept = 0;
    while makers.iter().any(|maker| !maker.is_finished()) {
        swept += scene.sweep(&none(), false).await.len();
    }
    for maker in makers {
        maker.await.unwrap();
    }
    assert!(swept > 0, "the sweeps had nothing to do, so nothing was tried");
    scene.sweep(&none(), false).await;
    assert_eq!((scene.layers(), scene.staged()), (none(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_hangs_ends_when_its_caller_goes_away() {
    let scene = Scene::new();
    let mark = format!("4{:09}", std::process::id());
    let recipe = format!("name = \"x\"\nsuite = \"bookworm\"\nvariant = \"essential\"\nsteps = [\"sleep {mark}\"]\n");
    let (catalog, (lines, mut told)) = (Arc::clone(&scene.catalog), mpsc::channel(100));
    let make = tokio::spawn(async move { catalog.make(None, &name("slow"), TemplateSource::Recipe(recipe), lines).await });
    while !told.recv().await.expect("the build gets as far as its steps").text.contains("running --customize-hook") {}
    let processes = || {
        let all = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
        all.filter(|line| *line == format!("sleep\0{mark}\0").as_bytes()).count()
    };
    until(|| processes() > 0).await;
    make.abort();
    assert!(make.await.unwrap_err().is_cancelled());
    let other = scene.make(None, "slow", scene.archive(&root("other").tar())).await.unwrap();
    assert_eq!((processes(), scene.staged()), (0, 0));
    assert_eq!(scene.store.templates().unwrap(), [other]);
}
