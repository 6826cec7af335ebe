//! The shapes of E2B's requests and answers, as they are on the wire. Unknown fields are ignored: clients are newer or older than this.

mod build;
mod filesystem;
mod interpreter;
mod process;
mod sandbox;
mod secret;
mod snapshot;
mod template;
mod volume;

pub(crate) use build::{
    AssignTags, BuildAccepted, BuildRequest, BuildStart, BuildStatus, DeleteTags, LogEntry, LogQuery, Reason, StepDto, TemplateChange,
    UploadLink,
};
pub(crate) use filesystem::{
    CreateWatcher, Entry, Event, EventEnvelope, ListDir, Move, OfPath, OfWatcher, UploadedFile, Uploads, WatchDir,
};
pub(crate) use interpreter::{ContextDto, Execute, NewContext};
pub(crate) use process::{Input, OfProcess, PtySizeDto, Selector, SendInput, SendSignal, Start, StreamInput, Update};
pub(crate) use sandbox::{
    Connect, ListQuery, Metric, MetricsQuery, NetworkDto, NetworkRule, NewSandbox, Pause, Refresh, SandboxDetail, SandboxDto, Timeout,
};
pub(crate) use secret::{NewSecret, SecretDto, SecretQuery, SecretUpdate};
pub(crate) use snapshot::{ForkDto, ForkErrorDto, NewFork, NewSnapshot, SnapshotDto, SnapshotQuery};
pub(crate) use template::{TemplateAlias, TemplateDto};
pub(crate) use volume::{ContentQuery, EntryPatch, EntryStat, NewVolume, VolumeAndToken, VolumeDto, VolumeMountDto};
