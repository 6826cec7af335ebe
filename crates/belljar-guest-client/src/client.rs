//! [`Guest`] by frames: each verb says what it asks, how long that may take and what an honest answer looks like.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belljar_guest_line::Patience;
use belljar_guest_protocol::wire::{
    AnswerWish, Attach, Connect as ConnectBody, EventBody, FileBody, GetXattr, HitBody, Identity, ListDirectory, Made, MetricsBody,
    PathOnly, PortBody, ProcessBody, ProcessOnly, ReadFile, Rename, Renew, Resize, Search, SetMode, SetOwner, SetXattr, SignalProcess,
    Start, Taken, Wait, Waited, Watch, WishBody, WriteFile, WriteStdin, XattrValue,
};
use belljar_guest_protocol::{MAX_FRAME, Verb};
use belljar_ports::{
    ByteStream, EventStream, FileContent, Guest, GuestConnection, GuestError, GuestInfo, OutputStream, SearchStream, WishStream,
};
use belljar_types::{
    ArtifactId, ByteRange, ExitStatus, FileEvent, FileInfo, GuestMetrics, GuestPath, Invalid, KeepWish, ListOptions, ListeningPort,
    Offsets, ProcessId, ProcessInfo, ProcessSpec, PtySize, SearchHit, SearchQuery, Signal, UserName, WishId, WriteOptions,
};
use bytes::Bytes;
use futures_util::StreamExt;
use minicbor::bytes::ByteVec;

use crate::error::{bad_value, misbehaved};
use crate::exchange::{Again, Asked, Exchange};
use crate::pool::Pool;
use crate::stream::{self, ContentReader, ItemReader, OutputReader};
use crate::{Connect, Credentials, collect, tunnel, upload};

/// For answers that need no work worth mentioning.
const QUICK: Duration = Duration::from_secs(30);
/// For answers that may have to go through a whole tree or a slow disk.
const THOROUGH: Duration = Duration::from_secs(600);
/// More processes, ports than any agent knows.
const MOST_PROCESSES: u64 = 4096;
const MOST_PORTS: u64 = 262_144;
const LONGEST_VERSION: usize = 64;

/// Talks to one sandbox's agent. Cheap to share; calls run side by side on connections of their own.
pub struct GuestClient {
    pool: Arc<Pool>,
}

impl GuestClient {
    /// A client that makes its connections with `connect`. Does nothing until the first call.
    pub fn new(connect: Arc<dyn Connect>, credentials: Credentials) -> Self {
        Self::with_patience(connect, credentials, Patience::default())
    }

    /// A client that bears silence differently; for tests of agents that go silent.
    pub fn with_patience(connect: Arc<dyn Connect>, credentials: Credentials, patience: Patience) -> Self {
        Self { pool: Arc::new(Pool::new(connect, credentials, patience)) }
    }

    /// Gives the agent a new identity after a restore or a fork. This client's own credentials are worth nothing afterwards: make a new one with `to`.
    pub async fn renew(
        &self,
        to: &Credentials,
        gateway: Option<Ipv4Addr>,
        wall_clock_nanos: Option<u64>,
        hostname: Option<&str>,
        env: BTreeMap<String, String>,
    ) -> Result<(), GuestError> {
        let body = Renew {
            sandbox: to.sandbox.to_string(),
            execution: to.execution.to_string(),
            token: (*to.token.reveal()).into(),
            wall_clock_nanos,
            hostname: hostname.map(Into::into),
            gateway: gateway.map(|address| address.octets().into()),
            quiet: None,
            env: Some(env),
        };
        self.once(&Asked::new(Verb::Renew, Again::Unsafe, &body)?, QUICK).await
    }

    /// Asks the agent to leave alone what programs write, hangs up, and returns when it has hung up too: from then on, and until the next connection,
    /// nothing reaches it. Its memory can be written down.
    pub async fn farewell(&self) -> Result<(), GuestError> {
        const LONGEST: Duration = Duration::from_secs(5);
        let Credentials { sandbox, execution, token } = self.pool.credentials().clone();
        let body = Renew {
            sandbox: sandbox.to_string(),
            execution: execution.to_string(),
            token: (*token.reveal()).into(),
            wall_clock_nanos: None,
            hostname: None,
            gateway: None,
            quiet: Some(true),
            env: None,
        };
        self.once::<()>(&Asked::new(Verb::Renew, Again::Unsafe, &body)?, QUICK).await?;
        self.pool.hang_up(LONGEST).await;
        Ok(())
    }

    async fn once<T: for<'b> minicbor::Decode<'b, ()>>(&self, asked: &Asked, limit: Duration) -> Result<T, GuestError> {
        Exchange::once(&self.pool, asked, limit).await
    }

    async fn begin(&self, spec: &ProcessSpec, attach: bool) -> Result<(Exchange, ProcessInfo), GuestError> {
        spec.validate()?;
        let asked = Asked::new(Verb::Start, Again::Safe, &Start::new(spec, attach))?.about(&spec.id);
        let (exchange, body) = Exchange::ask::<ProcessBody>(&self.pool, &asked, QUICK).await?;
        let info = value::<_, ProcessInfo>(Verb::Start, body)?;
        if info.id != spec.id {
            return Err(misbehaved(Verb::Start, "it answered with another process"));
        }
        Ok((exchange, info))
    }

    async fn file(&self, asked: &Asked, limit: Duration) -> Result<FileInfo, GuestError> {
        value(asked.verb, self.once::<FileBody>(asked, limit).await?)
    }
}

fn value<B, T: TryFrom<B, Error = Invalid>>(verb: Verb, body: B) -> Result<T, GuestError> {
    T::try_from(body).map_err(|invalid| bad_value(verb, &invalid))
}

fn bytes(path: &GuestPath) -> ByteVec {
    path.as_bytes().to_vec().into()
}

fn name(user: Option<&UserName>) -> Option<String> {
    user.map(ToString::to_string)
}

fn path_only(path: &GuestPath, user: Option<&UserName>) -> PathOnly {
    PathOnly { path: bytes(path), user: name(user) }
}

#[async_trait]
impl Guest for GuestClient {
    async fn hello(&self) -> Result<GuestInfo, GuestError> {
        let asked = Asked::new(Verb::Hello, Again::Safe, &())?;
        let (exchange, identity) = Exchange::ask::<Identity>(&self.pool, &asked, QUICK).await?;
        let generation = exchange.generation();
        exchange.finish();
        let expected = self.pool.credentials();
        if identity.sandbox != expected.sandbox.as_str() || identity.execution != expected.execution.as_str() {
            return Err(misbehaved(Verb::Hello, "it says to be another sandbox or another run"));
        }
        let version = identity.agent_version;
        if version.len() > LONGEST_VERSION || !version.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(misbehaved(Verb::Hello, "a version that is none"));
        }
        let Credentials { sandbox, execution, .. } = expected.clone();
        Ok(GuestInfo { sandbox, execution, agent_version: version, generation })
    }

    async fn start(&self, spec: &ProcessSpec) -> Result<ProcessInfo, GuestError> {
        let (exchange, info) = self.begin(spec, false).await?;
        exchange.finish();
        Ok(info)
    }

    async fn start_attached(&self, spec: &ProcessSpec) -> Result<(ProcessInfo, OutputStream), GuestError> {
        let (exchange, info) = self.begin(spec, true).await?;
        Ok((info, stream::run(exchange, OutputReader::new(Offsets::default()))))
    }

    async fn processes(&self) -> Result<Vec<ProcessInfo>, GuestError> {
        let asked = Asked::new(Verb::Processes, Again::Safe, &())?;
        let mut all = collect::all::<ProcessBody, ProcessInfo>(&self.pool, &asked, MOST_PROCESSES, QUICK).await?;
        all.sort_by(|a, b| a.id.cmp(&b.id));
        if all.windows(2).any(|pair| matches!(pair, [a, b] if a.id == b.id)) {
            return Err(misbehaved(Verb::Processes, "the same process twice"));
        }
        all.sort_by_key(|process| process.started_at_millis);
        Ok(all)
    }

    async fn attach(&self, id: &ProcessId, from: Offsets) -> Result<OutputStream, GuestError> {
        let body = Attach { id: id.to_string(), stdout: from.stdout, stderr: from.stderr };
        let asked = Asked::new(Verb::Attach, Again::Safe, &body)?.about(id);
        let (exchange, body) = Exchange::ask::<ProcessBody>(&self.pool, &asked, QUICK).await?;
        if value::<_, ProcessInfo>(Verb::Attach, body)?.id != *id {
            return Err(misbehaved(Verb::Attach, "it answered with another process"));
        }
        Ok(stream::run(exchange, OutputReader::new(from)))
    }

    async fn wait(&self, id: &ProcessId, at_most: Duration) -> Result<Option<ExitStatus>, GuestError> {
        let body = Wait { id: id.to_string(), at_most_millis: u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX) };
        let asked = Asked::new(Verb::Wait, Again::Safe, &body)?.about(id);
        let waited: Waited = self.once(&asked, at_most.saturating_add(QUICK)).await?;
        waited.exit.map(|exit| value(Verb::Wait, exit)).transpose()
    }

    async fn write_stdin(&self, id: &ProcessId, offset: u64, content: Bytes) -> Result<(), GuestError> {
        let end =
            offset.checked_add(content.len() as u64).ok_or_else(|| Invalid::new("offset", "an end below 2^64", offset.to_string()))?;
        let asked = Asked::new(Verb::WriteStdin, Again::Safe, &WriteStdin { id: id.to_string(), offset })?.about(id);
        let exchange = Exchange::open(&self.pool, &asked).await?;
        let content = futures_util::stream::once(async { Ok(content) }).boxed();
        let (exchange, frame) = upload::send_all(exchange, content, Duration::MAX).await?;
        let taken: Taken = exchange.take_response(&frame)?;
        exchange.finish();
        if taken.offset < end { Err(misbehaved(Verb::WriteStdin, "it took less than it said")) } else { Ok(()) }
    }

    async fn close_stdin(&self, id: &ProcessId) -> Result<(), GuestError> {
        self.once(&Asked::new(Verb::CloseStdin, Again::Safe, &ProcessOnly { id: id.to_string() })?.about(id), QUICK).await
    }

    async fn signal(&self, id: &ProcessId, signal: Signal) -> Result<(), GuestError> {
        let body = SignalProcess { id: id.to_string(), signal: signal.number() };
        self.once(&Asked::new(Verb::Signal, Again::Unsafe, &body)?.about(id), QUICK).await
    }

    async fn resize(&self, id: &ProcessId, size: PtySize) -> Result<(), GuestError> {
        let body = Resize { id: id.to_string(), columns: size.columns, rows: size.rows };
        self.once(&Asked::new(Verb::Resize, Again::Safe, &body)?.about(id), QUICK).await
    }

    async fn read_file(&self, path: &GuestPath, range: ByteRange, user: Option<&UserName>) -> Result<FileContent, GuestError> {
        let body = ReadFile { path: bytes(path), user: name(user), offset: range.offset, length: range.length };
        let asked = Asked::new(Verb::ReadFile, Again::Safe, &body)?;
        let (exchange, body) = Exchange::ask::<FileBody>(&self.pool, &asked, THOROUGH).await?;
        let info = value(Verb::ReadFile, body)?;
        Ok(FileContent { info, bytes: stream::run(exchange, ContentReader { left: range.length.unwrap_or(u64::MAX) }) })
    }

    async fn write_file(&self, path: &GuestPath, options: &WriteOptions, content: ByteStream) -> Result<FileInfo, GuestError> {
        let asked = Asked::new(Verb::WriteFile, Again::Unsafe, &WriteFile::new(path, options))?;
        let exchange = Exchange::open(&self.pool, &asked).await?;
        let (exchange, frame) = upload::send_all(exchange, content, THOROUGH).await?;
        let body: FileBody = exchange.take_response(&frame)?;
        exchange.finish();
        value(Verb::WriteFile, body)
    }

    async fn stat(&self, path: &GuestPath, user: Option<&UserName>) -> Result<FileInfo, GuestError> {
        self.file(&Asked::new(Verb::Stat, Again::Safe, &path_only(path, user))?, THOROUGH).await
    }

    async fn list(&self, path: &GuestPath, options: &ListOptions) -> Result<Vec<FileInfo>, GuestError> {
        let asked = Asked::new(Verb::List, Again::Safe, &ListDirectory::new(path, options))?;
        let mut all = collect::after_answer::<FileBody, FileInfo>(&self.pool, &asked, u64::from(options.max_entries), THOROUGH).await?;
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(all)
    }

    async fn make_directory(&self, path: &GuestPath, user: Option<&UserName>) -> Result<bool, GuestError> {
        let made: Made = self.once(&Asked::new(Verb::MakeDirectory, Again::Unsafe, &path_only(path, user))?, THOROUGH).await?;
        Ok(made.made)
    }

    async fn rename(&self, from: &GuestPath, to: &GuestPath, user: Option<&UserName>) -> Result<FileInfo, GuestError> {
        let body = Rename { from: bytes(from), to: bytes(to), user: name(user) };
        self.file(&Asked::new(Verb::Rename, Again::Unsafe, &body)?, THOROUGH).await
    }

    async fn remove(&self, path: &GuestPath, user: Option<&UserName>) -> Result<(), GuestError> {
        self.once(&Asked::new(Verb::Remove, Again::Unsafe, &path_only(path, user))?, THOROUGH).await
    }

    async fn set_mode(&self, path: &GuestPath, mode: u32, user: Option<&UserName>) -> Result<(), GuestError> {
        let body = SetMode { path: bytes(path), user: name(user), mode };
        self.once(&Asked::new(Verb::SetMode, Again::Safe, &body)?, THOROUGH).await
    }

    async fn set_owner(&self, path: &GuestPath, uid: Option<u32>, gid: Option<u32>, user: Option<&UserName>) -> Result<(), GuestError> {
        let body = SetOwner { path: bytes(path), user: name(user), uid, gid };
        self.once(&Asked::new(Verb::SetOwner, Again::Safe, &body)?, THOROUGH).await
    }

    async fn get_xattr(&self, path: &GuestPath, attribute: &str, user: Option<&UserName>) -> Result<Option<Bytes>, GuestError> {
        let body = GetXattr { path: bytes(path), user: name(user), name: attribute.into() };
        let found: XattrValue = self.once(&Asked::new(Verb::GetXattr, Again::Safe, &body)?, THOROUGH).await?;
        Ok(found.value.map(|value| Vec::from(value).into()))
    }

    async fn set_xattr(&self, path: &GuestPath, attribute: &str, value: Option<&[u8]>, user: Option<&UserName>) -> Result<(), GuestError> {
        let value = value.map(|value| value.to_vec().into());
        let body = SetXattr { path: bytes(path), user: name(user), name: attribute.into(), value };
        self.once(&Asked::new(Verb::SetXattr, Again::Safe, &body)?, THOROUGH).await
    }

    async fn watch(&self, path: &GuestPath, recursive: bool, user: Option<&UserName>) -> Result<EventStream, GuestError> {
        let body = Watch { path: bytes(path), user: name(user), recursive };
        let (exchange, ()) = Exchange::ask(&self.pool, &Asked::new(Verb::Watch, Again::Safe, &body)?, THOROUGH).await?;
        Ok(stream::run(exchange, ItemReader::<EventBody, FileEvent>::new(u64::MAX)))
    }

    async fn search(&self, query: &SearchQuery) -> Result<SearchStream, GuestError> {
        query.validate()?;
        let (exchange, ()) = Exchange::ask(&self.pool, &Asked::new(Verb::Search, Again::Safe, &Search::from(query))?, THOROUGH).await?;
        Ok(stream::run(exchange, ItemReader::<HitBody, SearchHit>::new(u64::from(query.max_hits))))
    }

    async fn ports(&self) -> Result<Vec<ListeningPort>, GuestError> {
        collect::all::<PortBody, ListeningPort>(&self.pool, &Asked::new(Verb::Ports, Again::Safe, &())?, MOST_PORTS, QUICK).await
    }

    async fn connect(&self, port: u16) -> Result<GuestConnection, GuestError> {
        let (exchange, ()) = Exchange::ask(&self.pool, &Asked::new(Verb::Connect, Again::Unsafe, &ConnectBody { port })?, QUICK).await?;
        Ok(tunnel::open(exchange))
    }

    async fn metrics(&self) -> Result<GuestMetrics, GuestError> {
        let body: MetricsBody = self.once(&Asked::new(Verb::Metrics, Again::Safe, &())?, QUICK).await?;
        Ok(body.into())
    }

    async fn wishes(&self) -> Result<WishStream, GuestError> {
        let exchange = Exchange::open_silent(&self.pool, &Asked::new(Verb::Wishes, Again::Safe, &())?, QUICK).await?;
        Ok(stream::run(exchange, ItemReader::<WishBody, KeepWish>::new(u64::MAX)))
    }

    async fn answer_wish(&self, id: WishId, answer: Result<&ArtifactId, &str>) -> Result<(), GuestError> {
        let body = AnswerWish { id: id.0.into(), artifact: answer.ok().map(ToString::to_string), refusal: answer.err().map(Into::into) };
        self.once(&Asked::new(Verb::AnswerWish, Again::Safe, &body)?, QUICK).await
    }
}

const _: () = assert!(MAX_FRAME as usize > 64 << 10, "the longest extended attribute fits in one frame");
