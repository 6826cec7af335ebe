//! The layer that lies on top of every template: the agent, and the names by which it answers as `sudo` and as `belljar-keep`.

use std::fs::File;
use std::io;
use std::path::Path;

use belljar_types::LayerDigest;

use crate::archive::tree::Tree;
use crate::plant::{self, Owned};
use crate::{ImageError, LayerStore};

/// What the origin of every agent's layer says.
pub(crate) const ORIGIN: &str = "agent";
const GUEST: &[u8] = b".belljar/guest";
const GUEST_TARGET: &[u8] = b"/.belljar/guest";
/// Where programs look for `sudo`: the image's own would not work without set-user-ID, so ours covers it.
const SUDO: [&[u8]; 2] = [b"usr/bin/sudo", b"usr/local/bin/sudo"];

const KEEP: &[u8] = b"usr/bin/belljar-keep";

impl LayerStore {
    /// The layer with this agent. The same binary always gives the same layer.
    pub fn agent_layer(&self, guest_binary: &Path) -> Result<LayerDigest, ImageError> {
        let failed = |source| ImageError::AgentLayer { path: guest_binary.to_owned(), source };
        let info = self.make_layer(ORIGIN, |mut tree, _| plant_agent(&mut tree, guest_binary).map_err(failed))?;
        Ok(info.digest)
    }
}

fn plant_agent(tree: &mut Tree, guest_binary: &Path) -> io::Result<()> {
    plant::file(tree, GUEST, &mut File::open(guest_binary)?, Owned::root(0o755))?;
    for name in SUDO.into_iter().chain([KEEP]) {
        plant::symlink(tree, name, GUEST_TARGET)?;
    }
    Ok(())
}
