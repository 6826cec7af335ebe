//! Recipes: a template written down as a few lines of TOML, built from Debian packages, and built again only when the lines change.

mod build;
mod builder;
mod error;
mod inline;
mod sources;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use belljar_types::{Invalid, StartUp, Template, TemplateDefaults, TemplateName, UserName, escape_untrusted, hex};
use sha2::{Digest, Sha256};

pub use error::RecipeError;
pub use inline::recipe_text;

use crate::template::seconds_since_1970;
use crate::{ImageError, LayerStore, Progress, ProgressSink};

/// Changes when what Belljar itself does to a tree changes, so that cached templates are built again.
const BUILDER_VERSION: &[u8] = b"belljar recipe 1";

/// What a recipe file says.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The template's name.
    pub name: TemplateName,
    /// One line for people.
    #[serde(default)]
    pub description: String,
    /// The Debian release.
    pub suite: String,
    /// How much of Debian, as `mmdebstrap --variant` takes it.
    #[serde(default = "minbase")]
    pub variant: String,
    /// Packages over the variant's.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Paths that packages may not install, as dpkg patterns.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Paths that they may install all the same.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Apt source lines; this machine's own for the suite when empty.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Trust the certificates that the operator added to this host.
    #[serde(default)]
    pub trust_host_cas: bool,
    /// A file with more certificates to trust.
    #[serde(default)]
    pub extra_ca: Option<PathBuf>,
    /// Shell commands run as root inside the new system after the packages.
    #[serde(default)]
    pub steps: Vec<String>,
    /// Files written last.
    #[serde(default)]
    pub files: Vec<RecipeFile>,
    /// Environment of processes.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Who runs processes; `user` when unset.
    #[serde(default)]
    pub user: Option<UserName>,
    /// Where they start; the user's home when unset.
    #[serde(default)]
    pub workdir: Option<String>,
    /// What is started in every sandbox before anybody may use it.
    #[serde(default)]
    pub start: Option<StartUp>,
}

/// A file that a recipe writes.
#[derive(Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeFile {
    /// Where, relative to the root.
    pub path: String,
    /// What.
    pub content: String,
    /// Its mode.
    #[serde(default = "plain_mode")]
    pub mode: u32,
    /// Write it before the steps, which may need it, and not last.
    #[serde(default)]
    pub before_steps: bool,
}

/// As it was always hashed: a template is not built again for a field that a recipe does not use.
impl fmt::Debug for RecipeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RecipeFile");
        shown.field("path", &self.path).field("content", &self.content).field("mode", &self.mode);
        if self.before_steps {
            shown.field("before_steps", &true);
        }
        shown.finish()
    }
}

fn minbase() -> String {
    "minbase".to_owned()
}

fn plain_mode() -> u32 {
    0o644
}

impl Recipe {
    /// Reads and checks a recipe.
    pub fn load(path: &Path) -> Result<Self, RecipeError> {
        let text = recipe_text(path)?;
        let recipe: Self = toml::from_str(&text).map_err(|source| RecipeError::Parse { path: path.to_owned(), source })?;
        recipe.validate().map_err(|source| RecipeError::Invalid { path: path.to_owned(), source })?;
        Ok(recipe)
    }

    /// Reads and checks the text of a recipe that has no file.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let place = |error: toml::de::Error| {
            let got = error.span().and_then(|span| text.get(span)).unwrap_or_default();
            Invalid::new("recipe", format!("a recipe as TOML ({})", escape_untrusted(error.message().as_bytes())), got)
        };
        let recipe: Self = toml::from_str(text).map_err(place)?;
        recipe.validate()?;
        Ok(recipe)
    }

    fn validate(&self) -> Result<(), Invalid> {
        let word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-+.:=~/".contains(&b));
        let plain = |text: &str| word(text) && text.as_bytes()[0].is_ascii_alphanumeric();
        for (field, value) in [("suite", &self.suite), ("variant", &self.variant)] {
            if !plain(value) {
                return Err(Invalid::new(field, "one word of letters, digits and '-'", value));
            }
        }
        if let Some(package) = self.packages.iter().find(|package| !plain(package)) {
            return Err(Invalid::new("packages", "names of Debian packages", package));
        }
        if let Some(pattern) = self.exclude.iter().chain(&self.keep).find(|pattern| !pattern.starts_with('/') || pattern.contains('\n')) {
            return Err(Invalid::new("exclude", "patterns that start with '/'", pattern));
        }
        if let Some(line) = self.sources.iter().find(|line| !line.starts_with("deb ") || line.contains('\n')) {
            return Err(Invalid::new("sources", "lines like \"deb URI SUITE COMPONENT\"", line));
        }
        if let Some(file) = self.files.iter().find(|file| file.path.split('/').any(|part| matches!(part, "" | "." | ".."))) {
            return Err(Invalid::new("files.path", "a path relative to the root, without \".\" and \"..\"", &file.path));
        }
        if let Some(workdir) = self.workdir.as_ref().filter(|workdir| !workdir.starts_with('/') || workdir.contains('\0')) {
            return Err(Invalid::new("workdir", "a path that starts with '/'", workdir));
        }
        self.start.as_ref().map_or(Ok(()), StartUp::validate)
    }

    fn defaults(&self) -> TemplateDefaults {
        TemplateDefaults { env: self.env.clone(), user: self.user.clone(), workdir: self.workdir.clone(), start: self.start.clone() }
    }
}

/// The template of a recipe: the one that is there if nothing it was made from has changed, a new one otherwise.
///
/// Packages move on without the recipe changing: [`build_recipe`] builds again whatever is there.
pub fn ensure_recipe(store: &LayerStore, path: &Path, progress: &dyn ProgressSink) -> Result<Template, ImageError> {
    ensure(store, &Recipe::load(path)?, progress)
}

/// The template of a recipe that was read already.
pub(crate) fn ensure(store: &LayerStore, recipe: &Recipe, progress: &dyn ProgressSink) -> Result<Template, ImageError> {
    let plan = build::Plan::new(recipe)?;
    let origin = origin(recipe, &plan);
    if let Some(template) = store.template(&recipe.name)?
        && template.origin == origin
    {
        let present = template.layers.iter().map(|digest| store.layer(digest)).collect::<Result<Vec<_>, _>>()?;
        if present.iter().all(Option::is_some) {
            progress.report(Progress::Reused(&format!("template {}", recipe.name)));
            return with_defaults(store, template, recipe.defaults());
        }
    }
    build(store, recipe, &plan, origin, progress)
}

/// What processes get is no part of the layers, which stay.
fn with_defaults(store: &LayerStore, template: Template, defaults: TemplateDefaults) -> Result<Template, ImageError> {
    if template.defaults == defaults {
        return Ok(template);
    }
    let template = Template { defaults, ..template };
    store.put_template(&template)?;
    Ok(template)
}

/// Builds a recipe's template, whether or not there is one.
pub fn build_recipe(store: &LayerStore, path: &Path, progress: &dyn ProgressSink) -> Result<Template, ImageError> {
    let recipe = Recipe::load(path)?;
    let plan = build::Plan::new(&recipe)?;
    let origin = origin(&recipe, &plan);
    build(store, &recipe, &plan, origin, progress)
}

fn build(
    store: &LayerStore,
    recipe: &Recipe,
    plan: &build::Plan<'_>,
    origin: String,
    progress: &dyn ProgressSink,
) -> Result<Template, ImageError> {
    let store = store.holding();
    let layer = plan.build(&store, &origin, progress)?;
    let template = Template {
        name: recipe.name.clone(),
        layers: vec![layer.digest],
        defaults: recipe.defaults(),
        origin,
        created_at: seconds_since_1970(),
    };
    store.put_template(&template)?;
    Ok(template)
}

/// Names the recipe and everything it depends on but the packages themselves.
fn origin(recipe: &Recipe, plan: &build::Plan<'_>) -> String {
    let mut hasher = Sha256::new();
    hasher.update(BUILDER_VERSION);
    for part in [format!("{:?}", Ingredients(recipe)).as_bytes(), plan.builder.as_bytes(), plan.sources.join("\n").as_bytes()] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    for certificate in &plan.certificates {
        hasher.update(certificate);
    }
    let hash: [u8; 32] = hasher.finalize().into();
    format!("recipe {} sha256:{}", recipe.name, hex(&hash))
}

/// What a recipe's layer is made from, in the words in which it was always hashed: templates on disk are not built again for a field that
/// changes none of their files.
struct Ingredients<'a>(&'a Recipe);

impl fmt::Debug for Ingredients<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recipe = self.0;
        f.debug_struct("Recipe")
            .field("name", &recipe.name)
            .field("description", &recipe.description)
            .field("suite", &recipe.suite)
            .field("variant", &recipe.variant)
            .field("packages", &recipe.packages)
            .field("exclude", &recipe.exclude)
            .field("keep", &recipe.keep)
            .field("sources", &recipe.sources)
            .field("trust_host_cas", &recipe.trust_host_cas)
            .field("extra_ca", &recipe.extra_ca)
            .field("steps", &recipe.steps)
            .field("files", &recipe.files)
            .field("env", &recipe.env)
            .finish()
    }
}
