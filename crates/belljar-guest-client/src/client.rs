//! The client itself.
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belljar_ports::{ByteStream, EventStream, FileContent, Guest, GuestConnection, GuestError, GuestInfo, OutputStream, SearchStream};
use belljar_types::{
    ByteRange, ExitStatus, FileInfo, GuestMetrics, GuestPath, ListOptions, ListeningPort, Offsets, ProcessId, ProcessInfo, ProcessSpec,
    PtySize, SearchQuery, Signal, UserName, WriteOptions,
};
use bytes::Bytes;

use crate::{Connect, Credentials};

/// Talks to one sandbox's agent.
pub struct GuestClient {
    _connect: Arc<dyn Connect>,
    _credentials: Credentials,
}

impl GuestClient {
    /// A client that makes its connections with `connect`. Does nothing until the first call.
    pub fn new(connect: Arc<dyn Connect>, credentials: Credentials) -> Self {
        Self { _connect: connect, _credentials: credentials }
    }
}

fn soon<T>(operation: &'static str) -> Result<T, GuestError> {
    Err(GuestError::Lost { operation, source: std::io::ErrorKind::Unsupported.into() })
}

#[async_trait]
impl Guest for GuestClient {
    async fn hello(&self) -> Result<GuestInfo, GuestError> {
        soon("hello")
    }
    async fn start(&self, _spec: &ProcessSpec) -> Result<ProcessInfo, GuestError> {
        soon("start")
    }
    async fn start_attached(&self, _spec: &ProcessSpec) -> Result<(ProcessInfo, OutputStream), GuestError> {
        soon("start_attached")
    }
    async fn processes(&self) -> Result<Vec<ProcessInfo>, GuestError> {
        soon("processes")
    }
    async fn attach(&self, _id: &ProcessId, _from: Offsets) -> Result<OutputStream, GuestError> {
        soon("attach")
    }
    async fn wait(&self, _id: &ProcessId, _at_most: Duration) -> Result<Option<ExitStatus>, GuestError> {
        soon("wait")
    }
    async fn write_stdin(&self, _id: &ProcessId, _offset: u64, _bytes: Bytes) -> Result<(), GuestError> {
        soon("write_stdin")
    }
    async fn close_stdin(&self, _id: &ProcessId) -> Result<(), GuestError> {
        soon("close_stdin")
    }
    async fn signal(&self, _id: &ProcessId, _signal: Signal) -> Result<(), GuestError> {
        soon("signal")
    }
    async fn resize(&self, _id: &ProcessId, _size: PtySize) -> Result<(), GuestError> {
        soon("resize")
    }
    async fn read_file(&self, _path: &GuestPath, _range: ByteRange, _user: Option<&UserName>) -> Result<FileContent, GuestError> {
        soon("read_file")
    }
    async fn write_file(&self, _path: &GuestPath, _options: &WriteOptions, _content: ByteStream) -> Result<FileInfo, GuestError> {
        soon("write_file")
    }
    async fn stat(&self, _path: &GuestPath, _user: Option<&UserName>) -> Result<FileInfo, GuestError> {
        soon("stat")
    }
    async fn list(&self, _path: &GuestPath, _options: &ListOptions) -> Result<Vec<FileInfo>, GuestError> {
        soon("list")
    }
    async fn make_directory(&self, _path: &GuestPath, _user: Option<&UserName>) -> Result<bool, GuestError> {
        soon("make_directory")
    }
    async fn rename(&self, _from: &GuestPath, _to: &GuestPath, _user: Option<&UserName>) -> Result<FileInfo, GuestError> {
        soon("rename")
    }
    async fn remove(&self, _path: &GuestPath, _user: Option<&UserName>) -> Result<(), GuestError> {
        soon("remove")
    }
    async fn set_mode(&self, _path: &GuestPath, _mode: u32, _user: Option<&UserName>) -> Result<(), GuestError> {
        soon("set_mode")
    }
    async fn set_owner(&self, _path: &GuestPath, _uid: Option<u32>, _gid: Option<u32>, _user: Option<&UserName>) -> Result<(), GuestError> {
        soon("set_owner")
    }
    async fn get_xattr(&self, _path: &GuestPath, _name: &str, _user: Option<&UserName>) -> Result<Option<Bytes>, GuestError> {
        soon("get_xattr")
    }
    async fn set_xattr(&self, _path: &GuestPath, _name: &str, _value: Option<&[u8]>, _user: Option<&UserName>) -> Result<(), GuestError> {
        soon("set_xattr")
    }
    async fn watch(&self, _path: &GuestPath, _recursive: bool, _user: Option<&UserName>) -> Result<EventStream, GuestError> {
        soon("watch")
    }
    async fn search(&self, _query: &SearchQuery) -> Result<SearchStream, GuestError> {
        soon("search")
    }
    async fn ports(&self) -> Result<Vec<ListeningPort>, GuestError> {
        soon("ports")
    }
    async fn connect(&self, _port: u16) -> Result<Box<dyn GuestConnection>, GuestError> {
        soon("connect")
    }
    async fn metrics(&self) -> Result<GuestMetrics, GuestError> {
        soon("metrics")
    }
}
