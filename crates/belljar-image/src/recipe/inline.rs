//! Recipes whose files lie beside them. The text of a recipe is all that travels, so a file's `source` is replaced by what is in it.

use std::path::{Component, Path};

use belljar_types::Invalid;
use toml::{Table, Value};

use super::RecipeError;

/// The text of a recipe, complete: files that it names by `source`, relative to its own directory, are in it as `content`.
pub fn recipe_text(path: &Path) -> Result<String, RecipeError> {
    let text = std::fs::read_to_string(path).map_err(|source| RecipeError::Read { path: path.to_owned(), source })?;
    let mut table: Table = toml::from_str(&text).map_err(|source| RecipeError::Parse { path: path.to_owned(), source })?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut replaced = false;
    let files = table.get_mut("files").and_then(Value::as_array_mut);
    for file in files.into_iter().flatten().filter_map(Value::as_table_mut) {
        let Some(source) = file.remove("source") else { continue };
        let refuse = |expected: &str, got: &str| RecipeError::Invalid {
            path: path.to_owned(),
            source: Invalid::new("files.source", expected, got.as_bytes()),
        };
        let name = source.as_str().ok_or_else(|| refuse("a path as a string", &source.to_string()))?;
        if name.is_empty() || !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(refuse("a path below the recipe's directory, without \"..\"", name));
        }
        if file.contains_key("content") {
            return Err(refuse("nothing, because `content` is given too", name));
        }
        let beside = directory.join(name);
        let content = std::fs::read_to_string(&beside).map_err(|source| RecipeError::Read { path: beside, source })?;
        file.insert("content".to_owned(), Value::String(content));
        replaced = true;
    }
    // A recipe that says all by itself stays as it was written: errors name its own lines.
    Ok(if replaced { table.to_string() } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recipe;

    fn written(recipe: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("parts")).unwrap();
        std::fs::write(directory.path().join("parts/a.py"), "print(\"\"\"a\\n\"\"\")\n").unwrap();
        let path = directory.path().join("recipe.toml");
        std::fs::write(&path, recipe).unwrap();
        (directory, path)
    }

    #[test]
    fn a_file_beside_the_recipe_becomes_a_part_of_it() {
        let (_directory, path) = written(
            "name = \"t\"\nsuite = \"bookworm\"\n[[files]]\npath = \"a.py\"\nsource = \"parts/a.py\"\nmode = 0o755\nbefore_steps = true\n",
        );
        let recipe = Recipe::parse(&recipe_text(&path).unwrap()).unwrap();
        let file = recipe.files.first().unwrap();
        assert_eq!((file.content.as_str(), file.mode, file.before_steps), ("print(\"\"\"a\\n\"\"\")\n", 0o755, true));
    }

    #[test]
    fn a_recipe_without_such_files_stays_as_it_was_written() {
        let text = "# why\nname = \"t\"\nsuite = \"bookworm\"\n";
        let (_directory, path) = written(text);
        assert_eq!(recipe_text(&path).unwrap(), text);
    }

    #[test]
    fn no_file_elsewhere_is_read() {
        for source in ["../recipe.toml", "/etc/passwd", "", "parts/missing.py"] {
            let (_directory, path) =
                written(&format!("name = \"t\"\nsuite = \"bookworm\"\n[[files]]\npath = \"a\"\nsource = \"{source}\"\n"));
            assert!(recipe_text(&path).is_err(), "{source}");
        }
    }

    #[test]
    fn the_recipes_of_this_repository_are_understood() {
        for name in ["base", "minimal", "code-interpreter-v1"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../templates/{name}.toml"));
            Recipe::parse(&recipe_text(&path).unwrap()).unwrap();
        }
    }
}
