//! A wish: a program inside a sandbox asks to have a file kept. Whoever asks is hostile, so what is too long is none.

use crate::{GuestPath, Invalid, UserName};

/// Names one wish of one sandbox. The agent draws it; forks of a sandbox have its open wishes too, under the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WishId(pub [u8; 16]);

/// A file that a program inside asks to have kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepWish {
    /// Its name.
    pub id: WishId,
    /// Where the file is, from the root.
    pub path: GuestPath,
    /// Who asks, and reads it.
    pub user: UserName,
    /// What to call it; as it is called there when unset.
    pub name: Option<String>,
    /// What it is; as its first bytes look when unset.
    pub media_type: Option<String>,
}

impl KeepWish {
    /// The longest name and the longest type, in bytes.
    pub const LONGEST_TEXT: usize = 255;

    /// Checks lengths; whoever grants the wish looks at the rest.
    pub fn validate(self) -> Result<Self, Invalid> {
        for (field, text) in [("name", &self.name), ("type", &self.media_type)] {
            if text.as_ref().is_some_and(|text| text.len() > Self::LONGEST_TEXT) {
                return Err(Invalid::new(field, format!("at most {} bytes", Self::LONGEST_TEXT), text.clone().unwrap_or_default()));
            }
        }
        if !self.path.as_bytes().starts_with(b"/") {
            return Err(Invalid::new("path", "one from the root", self.path.as_bytes()));
        }
        Ok(self)
    }
}
