//! The name service of the gateway. It knows the policies and nothing else: an allowed name gets an address that stands for it, every other
//! name does not exist, and no question ever leaves the host.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use belljar_policy::resolvable;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;

use super::message::{A, AAAA, Code, HTTPS, Question, SVCB};
use crate::EventKind;
use crate::session::{Session, Sessions};

const LARGEST: usize = 1500;
/// How long an answer may be kept: long enough to connect, short enough to follow a change of policy.
const TTL: u32 = 30;
const IDLE: Duration = Duration::from_secs(10);
const CONNECTIONS: usize = 256;

/// Answers datagrams for ever.
pub(crate) async fn serve_udp(socket: UdpSocket, sessions: Arc<Sessions>) {
    let mut bytes = [0; LARGEST];
    loop {
        let Ok((count, from)) = socket.recv_from(&mut bytes).await else { continue };
        if let Some(answer) = answer(&sessions, from, bytes.get(..count).unwrap_or_default()) {
            // A sandbox that does not take its answer asks again.
            let _ = socket.try_send_to(&answer, from);
        }
    }
}

/// Answers connections for ever.
pub(crate) async fn serve_tcp(listener: TcpListener, sessions: Arc<Sessions>) {
    let turns = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let Ok(turn) = Arc::clone(&turns).try_acquire_owned() else { continue };
        let sessions = Arc::clone(&sessions);
        tokio::spawn(async move {
            let _turn = turn;
            let _ended = tokio::time::timeout(IDLE, answer_stream(stream, from, &sessions)).await;
        });
    }
}

async fn answer_stream(mut stream: TcpStream, from: SocketAddr, sessions: &Sessions) -> std::io::Result<()> {
    loop {
        let length = usize::from(stream.read_u16().await?);
        if length > LARGEST {
            return Ok(());
        }
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).await?;
        let Some(answer) = answer(sessions, from, &bytes) else { return Ok(()) };
        stream.write_all(&[&u16::try_from(answer.len()).unwrap_or(0).to_be_bytes()[..], &answer].concat()).await?;
    }
}

/// `None` deserves no answer: nobody known, or no question.
fn answer(sessions: &Sessions, from: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
    let IpAddr::V4(address) = from.ip() else { return None };
    let session = sessions.find(address)?;
    let question = Question::parse(bytes)?;
    Some(if question.operation != 0 || !question.is_internet() {
        question.answer(Code::NotImplemented, None, 0, "")
    } else {
        decide(&session, &question)
    })
}

fn decide(session: &Session, question: &Question) -> Vec<u8> {
    let Some(name) = &question.name else { return question.answer(Code::Malformed, None, 0, "this is no host name") };
    let policy = session.policy();
    if !resolvable(&policy, name) {
        let reason = "denied by network.default: no rule allows this name";
        session.tell(EventKind::NameDenied, name.as_str(), 53, "network.default", reason);
        return question.answer(Code::NoSuchName, None, 0, reason);
    }
    match question.kind {
        A => match session.address_of(name) {
            Some(address) => question.answer(Code::NoError, Some(address), TTL, ""),
            None => question.answer(Code::Refused, None, 0, "too many different names in a minute"),
        },
        // It exists, and has nothing of that kind: no version 6, no keys to hide a name with.
        AAAA | HTTPS | SVCB => question.answer(Code::NoError, None, 0, ""),
        _ => question.answer(Code::Refused, None, 0, "only addresses can be asked for"),
    }
}
