//! The last step of every import: layers get what they lack and become a template under a name.

use std::time::SystemTime;

use belljar_types::{LayerDigest, Template, TemplateName};

use crate::finalise::ImageWishes;
use crate::{ImageError, LayerStore};

impl LayerStore {
    /// Completes a stranger's layers (lowest first) and writes the template.
    pub(crate) fn complete_template(
        &self,
        name: TemplateName,
        mut layers: Vec<LayerDigest>,
        wishes: ImageWishes,
        origin: String,
    ) -> Result<Template, ImageError> {
        let (completion, defaults) = self.finalise(&layers, wishes)?;
        layers.push(completion.digest);
        let template = Template { name, layers, defaults, origin, created_at: seconds_since_1970() };
        self.put_template(&template)?;
        Ok(template)
    }
}

/// Now, for people who wonder how old a template is.
pub(crate) fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
