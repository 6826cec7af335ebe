//! One connection of HTTP: each request is judged before anything is dialled or sent for it, and refused in words that name the rule.

use std::io;
use std::time::Duration;

use belljar_policy::HttpRequest;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::timeout;

use super::body::Reader;
use super::head::{Head, ResponseHead};
use crate::EventKind;
use crate::counts::Direction;
use crate::dial::To;
use crate::inspect;
use crate::prefixed::Prefixed;
use crate::relay::{Ended, Stream, pass, relay};
use crate::secrets::{self, Used};
use crate::way::Way;

/// How long a client may think between requests, and how long it may take for a head.
const IDLE: Duration = Duration::from_secs(120);
/// A server may send this many interim responses for one request.
const MOST_INTERIM: usize = 8;

/// How the outside is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upstream {
    /// As it is.
    Plain,
    /// In TLS, its certificate verified; secrets go here only.
    Tls,
}

impl Upstream {
    fn scheme(self) -> &'static str {
        match self {
            Self::Plain => "http",
            Self::Tls => "https",
        }
    }
}

/// What a refused client is told.
pub(crate) fn refusal(status: u16, reason: &str) -> Vec<u8> {
    let plain: String = reason.chars().filter(|c| (' '..='~').contains(c)).take(200).collect();
    let word = match status {
        400 => "Bad request",
        421 => "Misdirected request",
        502 => "Bad gateway",
        _ => "Forbidden",
    };
    let body = format!("belljar: {plain}\n");
    format!(
        "HTTP/1.1 {status} {word}: {plain}\r\ncontent-type: text/plain; charset=utf-8\r\nx-belljar-policy: {plain}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

struct Sides {
    client_read: ReadHalf<Box<dyn Stream>>,
    client_write: WriteHalf<Box<dyn Stream>>,
    from_client: Reader,
    upstream: Option<Connected>,
}

struct Connected {
    read: ReadHalf<Box<dyn Stream>>,
    write: WriteHalf<Box<dyn Stream>>,
    from_upstream: Reader,
}

impl Connected {
    fn over(stream: Box<dyn Stream>) -> Self {
        let (read, write) = tokio::io::split(stream);
        Self { read, write, from_upstream: Reader::default() }
    }
}

/// What a request asked for, and the rule that allowed it: enough to ask again when the policy changes.
#[derive(Clone)]
struct Asked {
    method: String,
    target: String,
    rule: String,
}

/// What follows one exchange.
enum Next {
    Another,
    Close,
    /// Both sides speak something else from here on, by leave of this request.
    TakenOver(Asked),
}

/// Serves until either side is done. `false` if the connection has to be broken off.
pub(crate) async fn serve(way: &Way, client: Box<dyn Stream>, upstream: Upstream) -> bool {
    let (client_read, client_write) = tokio::io::split(client);
    serve_all(way, Sides { client_read, client_write, from_client: Reader::default(), upstream: None }, upstream).await
}

async fn serve_all(way: &Way, mut sides: Sides, upstream: Upstream) -> bool {
    loop {
        match exchange(way, &mut sides, upstream).await {
            Ok(Next::Another) => {}
            Ok(Next::Close) => return sides.client_write.shutdown().await.is_ok(),
            Ok(Next::TakenOver(asked)) => return take_over(way, sides, &asked).await,
            Err(error) => {
                return way.settle(if error.kind() == io::ErrorKind::QuotaExceeded { Ended::Spent } else { Ended::Done })
                    && error.kind() == io::ErrorKind::NotConnected;
            }
        }
    }
}

async fn exchange(way: &Way, sides: &mut Sides, upstream: Upstream) -> io::Result<Next> {
    let head = match timeout(IDLE, sides.from_client.head(&mut sides.client_read)).await {
        Ok(Ok(Some(bytes))) => Head::parse(&bytes),
        Ok(Ok(None)) | Err(_) => return Ok(Next::Close),
        Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Err("the head of the request cannot be read"),
        Ok(Err(error)) => return Err(error),
    };
    let mut head = match head {
        Ok(head) => head,
        Err(problem) => return refuse(way, sides, 400, problem).await,
    };
    if let Err(problem) = head.check_host(&way.to, way.port, upstream.scheme()) {
        return refuse(way, sides, if problem.contains("another host") { 421 } else { 400 }, problem).await;
    }
    let decision = way.decide(Some(HttpRequest { method: &head.method, target: &head.target }));
    let what = format!("{} {}: {}", head.method, head.target.split('?').next().unwrap_or_default(), decision.reason);
    if !decision.allow {
        way.tell(EventKind::RequestDenied, &decision.rule, &what);
        return answer(sides, 403, &decision.reason).await;
    }
    way.tell(EventKind::RequestAllowed, &decision.rule, &what);
    if sides.upstream.is_none() {
        match connect(way, upstream).await {
            Ok(connected) => sides.upstream = Some(connected),
            Err(reason) => return answer(sides, 502, &format!("{} {reason}", way.to)).await,
        }
    }
    secrets::set_headers(way, &mut head);
    // Only now: whoever is at the other end has shown who it is.
    let used = match upstream {
        Upstream::Plain => Used::new(),
        Upstream::Tls => match secrets::add(way, &mut head) {
            Ok(used) => used,
            Err(reason) => return refuse(way, sides, 403, &reason).await,
        },
    };
    let asked = Asked { method: head.method.clone(), target: head.target.clone(), rule: decision.rule };
    tokio::select! {
        next = send_and_receive(way, sides, &head, &asked, &used) => next,
        () = overruled(way, &asked) => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

async fn connect(way: &Way, upstream: Upstream) -> Result<Connected, String> {
    let stream: Box<dyn Stream> = match upstream {
        Upstream::Plain => Box::new(way.try_dial().await?),
        Upstream::Tls => match &way.to {
            To::Name(name) => inspect::connect(way, name).await?,
            To::Address(_) => return Err("has no name that a certificate could be for".to_owned()),
        },
    };
    Ok(Connected::over(stream))
}

/// Returns when the request would not be allowed any more, and has told so.
async fn overruled(way: &Way, asked: &Asked) {
    let mut changes = way.session.changes();
    while way.decide(Some(HttpRequest { method: &asked.method, target: &asked.target })).allow {
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
    way.tell(EventKind::Cut, &asked.rule, "its policy changed");
}

async fn send_and_receive(way: &Way, sides: &mut Sides, head: &Head, asked: &Asked, used: &Used) -> io::Result<Next> {
    let Sides { client_read, client_write, from_client, upstream } = sides;
    let Some(Connected { read, write, from_upstream }) = upstream else { return Err(io::ErrorKind::NotConnected.into()) };
    let session = &way.session;
    let mut sent = false;
    let next = {
        let send = async {
            pass(session, Direction::Out, &head.write(), write).await?;
            from_client.body(head.framing, session, Direction::Out, client_read, write).await?;
            write.flush().await
        };
        let receive = receive(way, head, asked, used, from_upstream, read, client_write);
        tokio::pin!(send, receive);
        loop {
            tokio::select! {
                done = &mut send, if !sent => { done?; sent = true; }
                next = &mut receive => break next?,
            }
        }
    };
    // An answer before the whole request was read: what is left of it cannot be told from another.
    Ok(if sent || matches!(next, Next::TakenOver(_)) { next } else { Next::Close })
}

async fn receive(
    way: &Way,
    head: &Head,
    asked: &Asked,
    used: &Used,
    from_upstream: &mut Reader,
    read: &mut (impl AsyncRead + Unpin),
    client: &mut (impl AsyncWrite + Unpin),
) -> io::Result<Next> {
    for _ in 0..MOST_INTERIM {
        let bytes = from_upstream.head(read).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut response =
            ResponseHead::parse(&bytes, &head.method).map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))?;
        for (_, value) in &mut response.headers {
            *value = secrets::masked(value, used);
        }
        let taken_over = response.status == 101 && head.websocket;
        if response.status == 101 && !taken_over {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let last = response.status >= 200 || taken_over;
        let shown = ResponseHead { close: last && !taken_over && (response.close || head.close), ..response };
        pass(&way.session, Direction::In, &shown.write(&head.method, taken_over), client).await?;
        if taken_over {
            return Ok(Next::TakenOver(asked.clone()));
        }
        if last {
            from_upstream.body(shown.framing, &way.session, Direction::In, read, client).await?;
            client.flush().await?;
            return Ok(if shown.close { Next::Close } else { Next::Another });
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// What is said from here on is nobody's to read; it ends with the leave to say it.
async fn take_over(way: &Way, sides: Sides, asked: &Asked) -> bool {
    let Some(Connected { read, write, from_upstream }) = sides.upstream else { return false };
    let client = Prefixed::new(sides.from_client.rest(), sides.client_read.unsplit(sides.client_write));
    let upstream = Prefixed::new(from_upstream.rest(), read.unsplit(write));
    tokio::select! {
        ended = relay(&way.session, client, upstream) => way.settle(ended),
        () = overruled(way, asked) => false,
    }
}

async fn refuse(way: &Way, sides: &mut Sides, status: u16, problem: &str) -> io::Result<Next> {
    way.tell(EventKind::RequestDenied, "http", problem);
    answer(sides, status, problem).await
}

async fn answer(sides: &mut Sides, status: u16, reason: &str) -> io::Result<Next> {
    sides.client_write.write_all(&refusal(status, reason)).await?;
    sides.client_write.flush().await?;
    Ok(Next::Close)
}

#[cfg(test)]
mod tests;
