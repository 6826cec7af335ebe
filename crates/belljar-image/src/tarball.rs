//! A template from the tarball of a root filesystem, as `docker export`, `debootstrap` or `tar` make it.

use std::io::Read;

use belljar_types::{Template, TemplateName};

use crate::archive::{ArchiveForm, ArchiveLimits};
use crate::finalise::ImageWishes;
use crate::progress::Stoppable;
use crate::{ImageError, LayerStore, Progress, ProgressSink};

impl LayerStore {
    /// Takes a root filesystem, plain, gzip or zstd, as a template of this name.
    pub fn import_tarball(
        &self,
        name: TemplateName,
        archive: impl Read,
        limits: ArchiveLimits,
        progress: &dyn ProgressSink,
    ) -> Result<Template, ImageError> {
        progress.report(Progress::Step("unpacking the root filesystem"));
        let store = self.holding();
        let layer = store.import_tar(Stoppable::new(archive, progress), ArchiveForm::RootFilesystem, limits, "tarball")?;
        store.complete_template(name, vec![layer.digest], ImageWishes::default(), "tarball".to_owned())
    }
}
