//! Builds a recipe into a pool and says where its layers are, having hashed them again: `ensure_template POOL RECIPE`. For trying a recipe without a server.

use std::error::Error;
use std::path::Path;

use belljar_image::{LayerStore, PlainProgress, ensure_recipe};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pool, recipe] = arguments.as_slice() else { return Err("usage: ensure_template POOL RECIPE".into()) };
    let store = LayerStore::open(Path::new(pool))?;
    let template = ensure_recipe(&store, Path::new(recipe), &PlainProgress::new(std::io::stderr()))?;
    let mut out = std::io::stdout();
    for digest in &template.layers {
        store.verify(digest)?;
        std::io::Write::write_fmt(&mut out, format_args!("{}\n", store.layer_directory(digest).display()))?;
    }
    Ok(())
}
