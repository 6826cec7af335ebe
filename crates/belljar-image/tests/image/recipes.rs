//! The recipes of this repository: the small one is built for real, from packages, and used again instead of being built again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use belljar_image::{ImageError, LayerStore, Progress, Recipe, RecipeError, Silent, ensure_recipe};

fn recipe(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates").join(name)
}

#[test]
fn the_minimal_recipe_builds_a_debian_that_runs() {
    let directory = tempfile::tempdir().unwrap();
    let store = LayerStore::open(&directory.path().join("pool")).unwrap();
    let steps = Mutex::new(Vec::new());
    let progress = |progress: Progress<'_>| {
        if let Progress::Step(step) = progress {
            steps.lock().unwrap().push(step.to_owned());
        }
    };
    let template = ensure_recipe(&store, &recipe("minimal.toml"), &progress).unwrap();
    let seen = steps.lock().unwrap().join("\n");
    assert!(seen.contains("downloading packages"), "{seen}");
    assert_eq!(template.layers.len(), 1);
    store.verify(&template.layers[0]).unwrap();
    let root = store.layer_directory(&template.layers[0]);
    let shell = Command::new("chroot")
        .arg("--userspec=user")
        .arg(&root)
        .args(["/bin/bash", "-c", "id -un; id -u; python3 -c 'print(6 * 7)'; echo ~user"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&shell.stdout), "user\n1000\n42\n/home/user\n", "{}", String::from_utf8_lossy(&shell.stderr));
    assert_eq!(fs::read(root.join("etc/machine-id")).unwrap(), b"");
    assert_eq!(fs::read(root.join("etc/resolv.conf")).unwrap(), b"");
    assert_eq!(root.join("tmp").metadata().unwrap().mode() & 0o7777, 0o1777);
    assert_eq!(fs::read_dir(root.join("dev")).unwrap().count(), 0, "devices are the engine's business");
    let lists: Vec<_> = fs::read_dir(root.join("var/lib/apt/lists")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(lists.iter().all(|name| name == "lock" || name == "partial" || name == "auxfiles"), "{lists:?}");
    assert!(!root.join("usr/share/man/man1/bash.1.gz").exists());

    let reused = Mutex::new(false);
    let again = ensure_recipe(&store, &recipe("minimal.toml"), &|progress: Progress<'_>| {
        *reused.lock().unwrap() |= matches!(progress, Progress::Reused(_));
    });
    assert_eq!(again.unwrap(), template);
    assert!(*reused.lock().unwrap());
}

#[test]
fn a_failing_build_says_what_failed_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = LayerStore::open(&directory.path().join("pool")).unwrap();
    let file = directory.path().join("bad.toml");
    fs::write(&file, "name = \"bad\"\nsuite = \"bookworm\"\nsources = [\"deb file:///nonexistent bookworm main\"]\n").unwrap();
    let error = ensure_recipe(&store, &file, &Silent).unwrap_err();
    assert!(matches!(error, ImageError::Recipe(RecipeError::Build { .. })), "{error:?}");
    assert!(error.to_string().starts_with("mmdebstrap failed while"), "{error}");
    assert!(store.layers().unwrap().is_empty() && store.templates().unwrap().is_empty());
    assert_eq!(fs::read_dir(directory.path().join("pool/staging")).unwrap().count(), 0);
}

#[test]
fn the_base_recipe_asks_for_what_people_expect() {
    let base = Recipe::load(&recipe("base.toml")).unwrap();
    for package in ["bash", "python3", "python3-pip", "python3-venv", "nodejs", "npm", "git", "curl", "sudo", "build-essential", "procps"] {
        assert!(base.packages.iter().any(|name| name == package), "{package}");
    }
}

#[test]
fn a_bad_recipe_names_the_field() {
    use std::error::Error;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("recipe.toml");
    let whole = "name = \"a\"\nsuite = \"bookworm\"\n";
    for (text, expected) in [
        (format!("{whole}packages = [\"-o=evil\"]"), "packages: expected names of Debian packages"),
        (format!("{whole}packages = [\"a b\"]"), "packages: expected names of Debian packages"),
        ("name = \"a\"\nsuite = \"../x\"".to_owned(), "suite: expected one word"),
        (format!("{whole}[[files]]\npath = \"../etc/passwd\"\ncontent = \"\""), "files.path: expected a path relative"),
        (format!("{whole}[[files]]\npath = \"/etc/passwd\"\ncontent = \"\""), "files.path: expected a path relative"),
        (format!("{whole}exclude = [\"x\"]"), "exclude: expected patterns"),
        (format!("{whole}sources = [\"http://x\"]"), "sources: expected lines"),
        (format!("{whole}pakages = []"), "unknown field `pakages`"),
        ("name = \"../a\"\nsuite = \"x\"".to_owned(), "template name: expected"),
    ] {
        fs::write(&file, &text).unwrap();
        let error = Recipe::load(&file).unwrap_err();
        let source = error.source().map(ToString::to_string).unwrap_or_default();
        assert!(source.contains(expected), "{text}: {error}: {source}");
    }
}
