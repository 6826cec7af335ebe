//! Runs `mmdebstrap` and takes what it makes as a layer, through the same guarded unpacking as any archive.
//!
//! The new system never lies on disk twice: the builder writes a tar to a pipe, and the pipe is unpacked into the store.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::builder::{self, Builder, Workshop};
use super::{Recipe, RecipeError, sources};
use crate::archive::tree::Tree;
use crate::archive::{ArchiveForm, ArchiveLimits, unpack};
use crate::plant::{self, Owned};
use crate::store::Staged;
use crate::{ArchiveError, ImageError, LayerInfo, LayerStore, Progress, ProgressSink, Refusal, StoreError};

const HOST_CERTIFICATES: &str = "/usr/local/share/ca-certificates";
/// Proxies are the machine's own business, like its apt sources; the rest of the environment is not the builder's.
const PASSED_ENVIRONMENT: [&str; 7] = ["PATH", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/// Everything a build needs, gathered before it starts, so that what is missing is said at once.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    recipe: &'a Recipe,
    pub(super) builder: String,
    pub(super) sources: Vec<String>,
    pub(super) certificates: Vec<Vec<u8>>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(recipe: &'a Recipe) -> Result<Self, RecipeError> {
        let version = Command::new("mmdebstrap").arg("--version").output().map_err(RecipeError::Builder)?;
        let sources = if recipe.sources.is_empty() {
            sources::for_suite(Path::new("/etc/apt"), &recipe.suite).map_err(RecipeError::Sources)?
        } else {
            recipe.sources.clone()
        };
        if sources.is_empty() {
            return Err(RecipeError::NoSources { suite: recipe.suite.clone() });
        }
        let builder = String::from_utf8_lossy(&version.stdout).into_owned();
        Ok(Self { recipe, builder, sources, certificates: certificates(recipe)? })
    }

    pub(super) fn build(&self, store: &LayerStore, origin: &str, progress: &dyn ProgressSink) -> Result<LayerInfo, ImageError> {
        let staging = store.staging_directory();
        let staged = |source| StoreError::Stage { path: staging.clone(), source };
        let scratch = Staged::new(&staging).map_err(staged)?;
        let workshop = Workshop::new().map_err(RecipeError::Workshop)?;
        let mut command = self.command(&scratch.path()).map_err(staged)?;
        command.env("TMPDIR", workshop.path());
        progress.report(Progress::Step(&format!("building template {}", self.recipe.name)));
        store.make_layer(origin, |tree, _| {
            let mut builder = Builder::start(&mut command, &self.sources)?;
            let root = rustix::io::fcntl_dupfd_cloexec(tree.root(), 0).map_err(|e| staged(e.into()))?;
            let unpacked = builder.follow(progress, |stream| unpack(stream, ArchiveForm::RootFilesystem, ArchiveLimits::default(), tree));
            let finished = builder.finish();
            match unpacked {
                // The builder's own failure explains a torn archive, but what went wrong here explains the builder's broken pipe.
                Err(error) if !matches!(error, ArchiveError::Read(_) | ArchiveError::Archive(Refusal::Damaged(_))) => {
                    return Err(error.into());
                }
                unpacked => {
                    finished?;
                    unpacked?;
                }
            }
            progress.report(Progress::Step("finishing the root filesystem"));
            self.plant(&mut Tree::from_root(root))
        })
    }

    fn command(&self, scratch: &Path) -> io::Result<Command> {
        let recipe = self.recipe;
        let mut command = builder::command();
        command.args(["--mode=root", "--format=tar", "--skip=output/dev"]).arg(format!("--variant={}", recipe.variant));
        if !recipe.packages.is_empty() {
            command.arg(format!("--include={}", recipe.packages.join(",")));
        }
        command.args(recipe.exclude.iter().map(|pattern| format!("--dpkgopt=path-exclude={pattern}")));
        command.args(recipe.keep.iter().map(|pattern| format!("--dpkgopt=path-include={pattern}")));
        // Inside as well, packages bring only what they need, and a question nobody can answer does not stop them.
        command.args(["--aptopt=APT::Install-Recommends \"false\"", "--aptopt=Acquire::Languages \"none\""]);
        for (number, certificate) in self.certificates.iter().enumerate() {
            let file = scratch.join(format!("ca-{number}.crt"));
            fs::write(&file, certificate)?;
            let target = format!("/usr/local/share/ca-certificates/host-{number}.crt");
            command.arg(format!("--customize-hook=upload {} {target}", file.display()));
        }
        if !self.certificates.is_empty() {
            command.arg("--customize-hook=chroot \"$1\" update-ca-certificates");
        }
        for (number, early) in recipe.files.iter().filter(|file| file.before_steps).enumerate() {
            let content = scratch.join(format!("file-{number}"));
            fs::write(&content, early.content.trim_start_matches('\n'))?;
            // From inside, where a link can lead to nothing of the host's. The path is an argument of the inner shell, so nothing in it is a command.
            let write = r#"mkdir -p "$(dirname "$0")" && cat > "$0" && chmod "$1" "$0""#;
            let (path, mode, content) = (quoted(&format!("/{}", early.path)), early.mode & 0o7777, content.display());
            command.arg(format!("--customize-hook=chroot \"$1\" /bin/sh -ec {} {path} {mode:o} < {content}", quoted(write)));
        }
        if !recipe.steps.is_empty() {
            let script = scratch.join("steps.sh");
            fs::write(&script, recipe.steps.join("\n"))?;
            command.arg(format!("--customize-hook=chroot \"$1\" /bin/sh -e < {}", script.display()));
        }
        command.args([&recipe.suite, "-", "-"]);
        command.env_clear().env("LC_ALL", "C.UTF-8");
        command.envs(PASSED_ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// What every sandbox expects, then what the recipe lists.
    fn plant(&self, tree: &mut Tree) -> Result<(), ImageError> {
        let mut write = |path: &str, content: &str, mode: u32| {
            let planted = plant::file(tree, path.as_bytes(), &mut content.as_bytes(), Owned::root(mode));
            planted.map_err(|source| RecipeError::Plant { path: path.to_owned(), source })
        };
        // An empty machine id is filled by whoever boots; a copied one would make all sandboxes one machine.
        write("etc/machine-id", "", 0o444)?;
        write("etc/resolv.conf", "", 0o644)?;
        write("etc/hostname", "sandbox\n", 0o644)?;
        write("etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n", 0o644)?;
        for file in self.recipe.files.iter().filter(|file| !file.before_steps) {
            write(&file.path, file.content.trim_start_matches('\n'), file.mode)?;
        }
        for (path, mode) in crate::MOUNT_POINTS {
            let planted = plant::directory(tree, path.as_bytes(), Owned::root(mode));
            planted.map_err(|source| RecipeError::Plant { path: path.to_owned(), source })?;
        }
        Ok(())
    }
}

/// One word of a shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn certificates(recipe: &Recipe) -> Result<Vec<Vec<u8>>, RecipeError> {
    let read = |path: &Path| fs::read(path).map_err(|source| RecipeError::Certificates { path: path.to_owned(), source });
    let mut found = Vec::new();
    if recipe.trust_host_cas {
        let directory = Path::new(HOST_CERTIFICATES);
        let mut files: Vec<PathBuf> = match fs::read_dir(directory) {
            Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(RecipeError::Certificates { path: directory.to_owned(), source }),
        };
        files.retain(|file| file.extension().is_some_and(|extension| extension == "crt"));
        files.sort_unstable();
        for file in files {
            found.push(read(&file)?);
        }
    }
    if let Some(file) = &recipe.extra_ca {
        found.push(read(file)?);
    }
    Ok(found)
}
