//! What may be made for whom, decided before anything is done.
//!
//! A recipe is not data. Its steps run as root on this host behind nothing but a `chroot`, and so do the scripts of packages from
//! sources that it names; a file that it refers to is read from this host. So what comes from a project has none of these, unless the
//! operator trusts all projects.

use std::path::{Component, Path, PathBuf};

use belljar_ports::TemplateSource;
use belljar_types::{Invalid, ProjectId, TemplateName};

use super::CatalogOptions;
use crate::{Recipe, Reference};

/// No honest recipe is longer.
const RECIPE_BYTES_MAX: usize = 1 << 20;

/// A request that was looked at.
#[derive(Debug)]
pub(super) enum Work {
    Recipe(Box<Recipe>),
    Archive(PathBuf),
    Image(Reference),
}

impl Work {
    pub(super) fn admit(
        source: TemplateSource,
        owner: Option<&ProjectId>,
        name: &TemplateName,
        options: &CatalogOptions,
    ) -> Result<Self, Invalid> {
        match source {
            TemplateSource::Archive(path) => Ok(Self::Archive(path)),
            TemplateSource::Image(reference) => Ok(Self::Image(in_registry(&reference, options.default_registry.as_deref())?)),
            TemplateSource::Recipe(text) => {
                if text.len() > RECIPE_BYTES_MAX {
                    return Err(Invalid::new("recipe", format!("at most {RECIPE_BYTES_MAX} bytes"), text));
                }
                // The name that was asked for counts: one recipe may make several templates.
                let mut recipe = Recipe { name: name.clone(), ..Recipe::parse(&text)? };
                if owner.is_some() && !options.trust_projects {
                    refuse_power(&recipe)?;
                }
                if let Some(file) = recipe.extra_ca.take() {
                    let directory = options.recipe_directory.as_deref().filter(|_| owner.is_none());
                    recipe.extra_ca = Some(beside(directory, &file)?);
                }
                Ok(Self::Recipe(Box::new(recipe)))
            }
        }
    }
}

/// An image where its name says, or else in the operator's registry.
fn in_registry(name: &str, default_registry: Option<&str>) -> Result<Reference, Invalid> {
    let plain = |invalid: Invalid| match default_registry {
        Some(registry) => format!("{registry}/{name}").parse(),
        None => Err(invalid),
    };
    name.parse().or_else(plain)
}

fn refuse_power(recipe: &Recipe) -> Result<(), Invalid> {
    for (field, lines) in [("recipe.steps", &recipe.steps), ("recipe.sources", &recipe.sources)] {
        if let Some(line) = lines.first() {
            let expected =
                "none: they run as root on the host, so only the server's own recipes may have them; ask the operator, or import an image";
            return Err(Invalid::new(field, expected, line));
        }
    }
    Ok(())
}

/// A file in the directory of the server's recipes.
fn beside(directory: Option<&Path>, file: &Path) -> Result<PathBuf, Invalid> {
    let refuse = |expected: &str| Invalid::new("recipe.extra_ca", expected, file.as_os_str().as_encoded_bytes());
    let Some(directory) = directory else {
        return Err(refuse("no file: this recipe came without a directory to look in; write the certificate into the recipe's `files`"));
    };
    if !file.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(refuse("a file in the server's recipe directory, without \"..\""));
    }
    Ok(directory.join(file))
}
