//! A client of the native API, for the command line and for tests.
//!
//! [`Client`] has one method a route. What makes it more than a list of requests is in [`Follower`] and [`Feeder`]: they read a process's output and
//! write its input by byte offset, so that a server that is restarted in between costs a pause and not a byte.

mod artifacts;
mod audit;
mod carrying;
mod client;
mod code;
mod error;
mod exec;
mod feed;
mod files;
mod follow;
mod holding;
mod keys;
mod metering;
mod output;
mod patience;
mod ports;
mod processes;
mod reach;
mod recordings;
mod request;
mod sandboxes;
mod server;
mod snapshots;
mod templates;
mod volumes;
mod webhooks;

pub use artifacts::{ArtifactPage, ArtifactView, NewArtifact};
pub use audit::{AuditAsk, AuditEvents, AuditVerdict};
pub use carrying::{NewImport, PushedSnapshot};
pub use client::{Client, Connection};
pub use code::{CodeLine, RunCode};
pub use error::{ClientError, ProblemBody};
pub use exec::{Exec, ExecResult, Omitted};
pub use feed::Feeder;
pub use files::{Download, FileEntry, NewFile};
pub use follow::Follower;
pub use holding::HELD;
pub use keys::{Key, MadeKey, NewKey, NewQuota, Project, QuotaOf};
pub use metering::{BudgetOf, Consumed, ConsumedByAll, ConsumedBySandbox, NewBudget};
pub use patience::{Link, Patience};
pub use ports::{Port, PortToken};
pub use processes::{Exit, OutputStream, Process, SpoolRequest, StartProcess, Written};
pub use reach::Reached;
pub use recordings::RecordingOf;
pub use sandboxes::{AskedLimits, Change, CreateSandbox, End, LimitsOf, ListSandboxes, Origin, Pause, SandboxPage, SandboxView};
pub use server::{EngineOf, Server, Who};
pub use snapshots::{Fork, ForkError, ListSnapshots, NewForks, NewSnapshot, SnapshotPage, SnapshotView, Tree};
pub use templates::{BuildLine, Cleaned, TemplateView};
pub use volumes::{NewClone, NewVolume, VolumeHolder, VolumeMount, VolumePage, VolumeView};
pub use webhooks::{NewWebhook, WebhookOf};

pub use reqwest::header::{HeaderMap, HeaderName};
pub use reqwest::{Body, Method, Upgraded};
