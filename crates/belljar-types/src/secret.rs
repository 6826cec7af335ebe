//! Values that must not be seen. They print as `***`, and only [`Secret::reveal`] gives them away, which is easy to search for.

use std::fmt;

/// Something that is never shown by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Hides `value`.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Shows the value: for the one place that has to send or compare it.
    pub fn reveal(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
