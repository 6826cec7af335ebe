//! Images as others make them: the same image by every way is the same template, and a lie anywhere in it is found.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use belljar_image::{ImageError, LayerStore, OciError, Refusal, Silent};
use belljar_types::Template;
use serde_json::{Value, json};

use crate::archives::{Archive, Entry};
use crate::images::{Image, Packing, archive_files, sha256, write_files};

pub(crate) struct Scene {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) store: LayerStore,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = LayerStore::open(&directory.path().join("pool")).unwrap();
        Self { directory, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn import_layout(&self, files: &BTreeMap<String, Vec<u8>>) -> Result<Template, ImageError> {
        let layout = self.path("layout");
        let _ = fs::remove_dir_all(&layout);
        write_files(&layout, files);
        self.store.import_oci_layout("image".parse().unwrap(), &layout, None, &Silent)
    }

    fn import_tar(&self, bytes: &[u8], tag: Option<&str>) -> Result<Template, ImageError> {
        let file = self.path("image.tar");
        fs::write(&file, bytes).unwrap();
        self.store.import_docker_archive("image".parse().unwrap(), &file, tag, &Silent)
    }

    pub(crate) fn assert_no_template(&self) {
        assert!(self.store.templates().unwrap().is_empty());
        assert_eq!(fs::read_dir(self.path("pool/staging")).unwrap().count(), 0);
    }
}

/// Mounts the template as a sandbox would see it and reads it there.
pub(crate) fn assert_is_sample(store: &LayerStore, template: &Template) {
    assert_eq!(template.defaults.user.as_ref().unwrap().as_str(), "app");
    assert_eq!(template.defaults.workdir.as_deref(), Some("/srv/data"));
    let env: Vec<_> = template.defaults.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("GREETING", "a=b"), ("PATH", "/bin")]);
    assert_eq!(template.layers.len(), 4);
    let lower: Vec<String> = template.layers.iter().rev().map(|layer| store.layer_directory(layer).display().to_string()).collect();
    let script = "mount -t overlay overlay -o \"lowerdir=$1\" \"$2\" && cd \"$2\" && find . -mindepth 1 | sort && cat srv/app var/cache/new \
        && stat -c '%u:%g %a' srv/data srv/app home/user tmp";
    let mount_point = tempfile::tempdir().unwrap();
    let output =
        Command::new("unshare").args(["--mount", "sh", "-c", script, "sh", &lower.join(":")]).arg(mount_point.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let names = "./.belljar ./bin ./bin/sh ./dev ./etc ./etc/group ./etc/hosts ./etc/passwd ./etc/resolv.conf ./home ./home/user ./proc ./root \
        ./run ./srv ./srv/app ./srv/data ./sys ./tmp ./var ./var/cache ./var/cache/new";
    let expected = names.split_whitespace().collect::<Vec<_>>().join("\n");
    assert_eq!(text, format!("{expected}\napplicationnew1234:1234 755\n1234:1234 755\n1000:1000 755\n0:0 1777\n"));
}

#[test]
fn a_layout_directory_becomes_what_the_image_says() {
    let scene = Scene::new();
    let template = scene.import_layout(&Image::sample().layout("latest")).unwrap();
    assert_is_sample(&scene.store, &template);
    assert!(template.origin.starts_with("oci layout sha256:"), "{}", template.origin);
}

#[test]
fn every_way_of_bringing_an_image_gives_the_same_layers() {
    let scene = Scene::new();
    let image = Image::sample();
    let layout = scene.import_layout(&image.layout("v1")).unwrap();
    let files = archive_files(&image.layout("v1"));
    for bytes in [files.tar(), files.gzip(), image.docker_archive("app:v1").tar(), image.docker_archive("app:v1").zstd()] {
        let scene = Scene::new();
        let template = scene.import_tar(&bytes, None).unwrap();
        assert_eq!((&template.layers, &template.defaults), (&layout.layers, &layout.defaults));
        assert_is_sample(&scene.store, &template);
    }
    let archived = scene.path("layout.tar");
    fs::write(&archived, files.tar()).unwrap();
    let template = scene.store.import_oci_layout("again".parse().unwrap(), &archived, Some("v1"), &Silent).unwrap();
    assert_eq!(template.layers, layout.layers);
}

#[test]
fn an_image_is_chosen_by_tag_and_platform() {
    let scene = Scene::new();
    let image = Image::sample();
    let mut files = image.layout("v1");
    let mut index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    let mut other = index["manifests"][0].clone();
    other["annotations"]["org.opencontainers.image.ref.name"] = json!("v2");
    index["manifests"].as_array_mut().unwrap().push(other);
    files.insert("index.json".into(), index.to_string().into_bytes());
    let error = scene.import_layout(&files).unwrap_err();
    assert_eq!(error.to_string(), "there are several images: v1, v2; choose one by its tag");
    let template = scene.store.import_oci_layout("i".parse().unwrap(), &scene.path("layout"), Some("v2"), &Silent).unwrap();
    assert_is_sample(&scene.store, &template);
    let error = scene.import_tar(&image.docker_archive("app:v1").tar(), Some("app:v3")).unwrap_err();
    assert_eq!(error.to_string(), "there are several images: app:v1; choose one by its tag");
    let foreign = Image { architecture: "s390x", ..image };
    let error = Scene::new().import_layout(&foreign.layout("v1")).unwrap_err();
    assert_eq!(error.to_string(), "the image is not made for linux/amd64; it has linux/s390x");
}

#[test]
fn repeated_and_empty_layers_do_not_repeat_in_the_template() {
    let scene = Scene::new();
    let mut image = Image::sample();
    let repeated = image.layers[2].clone();
    image.layers.insert(0, repeated);
    image.layers.insert(1, (Archive::new(), Packing::Plain));
    let template = scene.import_tar(&image.docker_archive("a:b").tar(), None).unwrap();
    assert_is_sample(&scene.store, &template);
}

/// Changes one file of a layout and says how the import fails.
fn tampered(change: impl FnOnce(&mut BTreeMap<String, Vec<u8>>)) -> ImageError {
    let scene = Scene::new();
    let mut files = Image::sample().layout("v1");
    change(&mut files);
    let error = scene.import_layout(&files).unwrap_err();
    scene.assert_no_template();
    error
}

fn blob_of(image: &Image, part: &str, number: usize) -> String {
    let (blobs, manifest) = image.blobs();
    let manifest: Value = serde_json::from_slice(&blobs[&manifest]).unwrap();
    let descriptor = if part == "config" { &manifest["config"] } else { &manifest["layers"][number] };
    format!("blobs/{}", descriptor["digest"].as_str().unwrap().replace(':', "/"))
}

#[test]
fn a_changed_blob_is_found() {
    let image = Image::sample();
    let manifest = format!("blobs/{}", image.blobs().1.replace(':', "/"));
    for name in [blob_of(&image, "config", 0), blob_of(&image, "layer", 1), manifest] {
        let error = tampered(|files| {
            let bytes = files.get_mut(&name).unwrap();
            let last = bytes.iter().rposition(u8::is_ascii_graphic).unwrap();
            bytes[last] ^= 1;
        });
        assert!(matches!(error, ImageError::Oci(OciError::Digest { .. })), "{name}: {error:?}");
    }
}

#[test]
fn a_longer_or_shorter_layer_is_found() {
    let name = blob_of(&Image::sample(), "layer", 1);
    let error = tampered(|files| files.get_mut(&name).unwrap().extend([0; 512]));
    assert!(matches!(error, ImageError::Oci(OciError::Size { .. })), "{error:?}");
    let error = tampered(|files| files.get_mut(&name).unwrap().truncate(600));
    assert!(matches!(error, ImageError::Oci(OciError::Size { .. })), "{error:?}");
    let error = tampered(|files| drop(files.remove(&name)));
    assert!(matches!(error, ImageError::Oci(OciError::Missing { .. })), "{error:?}");
}

#[test]
fn a_layer_that_is_not_what_the_configuration_says_is_found() {
    // The blob's own digest is right; only the configuration knows that another tar was meant.
    let scene = Scene::new();
    let honest = Image::sample();
    let mut swapped = honest.docker_archive("a:b");
    swapped = swapped.add(Entry::file("layer2/layer.tar", &Archive::new().add(Entry::file("srv/app", b"trojan")).tar()));
    let error = scene.import_tar(&swapped.tar(), None).unwrap_err();
    assert!(matches!(error, ImageError::Oci(OciError::Digest { .. })), "{error:?}");
    scene.assert_no_template();
}

#[test]
fn a_hostile_layer_is_refused_as_any_archive() {
    let scene = Scene::new();
    let mut image = Image::sample();
    image.layers.push((Archive::new().add(Entry::file("../../outside", b"x")), Packing::Gzip));
    let error = scene.import_layout(&image.layout("v1")).unwrap_err();
    let ImageError::Archive(archive) = &error else { panic!("{error:?}") };
    assert_eq!(archive.refusal(), Some(&Refusal::ParentPath));
    scene.assert_no_template();
}

#[test]
fn a_layout_cannot_read_files_of_the_host() {
    let scene = Scene::new();
    let image = Image::sample();
    let mut files = image.layout("v1");
    let name = blob_of(&image, "config", 0);
    let stolen = scene.path("host-file");
    fs::write(&stolen, files.remove(&name).unwrap()).unwrap();
    let layout = scene.path("layout");
    write_files(&layout, &files);
    std::os::unix::fs::symlink(&stolen, layout.join(&name)).unwrap();
    let error = scene.store.import_oci_layout("i".parse().unwrap(), &layout, None, &Silent).unwrap_err();
    assert!(matches!(error, ImageError::Oci(OciError::Read { .. })), "{error:?}");
    assert_eq!(sha256(&fs::read(layout.join(&name)).unwrap()), format!("sha256:{}", Path::new(&name).file_name().unwrap().display()));
}

#[test]
fn users_are_resolved_inside_the_image() {
    for (wish, expected) in
        [("", None), ("root", Some("root")), ("0", Some("root")), ("1234", Some("app")), ("app:games", Some("app")), ("77:5", Some("u77"))]
    {
        let mut image = Image::sample();
        image.config["User"] = json!(wish);
        let scene = Scene::new();
        let template = scene.import_layout(&image.layout("v1")).unwrap();
        assert_eq!(template.defaults.user.as_ref().map(belljar_types::UserName::as_str), expected, "{wish:?}");
    }
    for wish in ["nobody-here", "70000", "a b"] {
        let mut image = Image::sample();
        image.config["User"] = json!(wish);
        let error = Scene::new().import_layout(&image.layout("v1")).unwrap_err();
        assert!(error.to_string().starts_with("the image is not usable: user: expected"), "{error}");
    }
}

#[test]
fn account_files_behind_links_are_completed_where_they_are() {
    let scene = Scene::new();
    let base = Archive::new()
        .add(Entry::symlink("etc", "usr/etc"))
        .add(Entry::file("usr/etc/passwd", b"root:x:0:0::/root:/bin/sh\n"))
        .add(Entry::symlink("home", "/../../../../var/home"));
    let image = Image { layers: vec![(base, Packing::Gzip)], config: json!({}), architecture: "amd64" };
    let template = scene.import_layout(&image.layout("v1")).unwrap();
    let added = scene.store.layer_directory(template.layers.last().unwrap());
    assert!(fs::read_to_string(added.join("usr/etc/passwd")).unwrap().contains("user:x:1000:1000"));
    assert!(added.join("var/home/user").is_dir());
    assert!(added.join("etc").symlink_metadata().is_err() && added.join("home").symlink_metadata().is_err());
}

#[test]
fn directories_that_a_layer_only_implies_keep_the_attributes_from_below() {
    use std::os::unix::fs::MetadataExt;
    let scene = Scene::new();
    let base = Archive::new()
        .add(Entry::directory("tmp").mode(0o1777))
        .add(Entry::directory("var").mode(0o711))
        .add(Entry::directory("var/spool").mode(0o700).owner(7, 8))
        .add(Entry::directory("etc").mode(0o711).owner(0, 9));
    let implying = Archive::new()
        .add(Entry::file("tmp/file", b""))
        .add(Entry::file("var/spool/.wh.gone", b""))
        .add(Entry::file("etc/file", b""))
        .add(Entry::file("fresh/file", b""))
        .add(Entry::file("hidden/file", b""))
        .add(Entry::directory("late"));
    let over = Archive::new().add(Entry::file("late/x", b"")).add(Entry::directory("hidden").mode(0o750));
    let layers = [base, implying, over].map(|archive| (archive, Packing::Gzip)).to_vec();
    let template = scene.import_layout(&Image { layers, config: json!({}), architecture: "amd64" }.layout("v1")).unwrap();
    let added = scene.store.layer_directory(template.layers.last().unwrap());
    for (name, expected) in
        [("tmp", (0o1777, 0, 0)), ("var", (0o711, 0, 0)), ("var/spool", (0o700, 7, 8)), ("etc", (0o711, 0, 9)), ("late", (0o755, 0, 0))]
    {
        let stat = added.join(name).symlink_metadata().unwrap();
        assert_eq!((stat.mode() & 0o7777, stat.uid(), stat.gid()), expected, "{name}");
    }
    assert!(!added.join("fresh").exists() && !added.join("hidden").exists(), "nothing below describes them");
    for digest in &template.layers {
        scene.store.verify(digest).unwrap();
    }
}
