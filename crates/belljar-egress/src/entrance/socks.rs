//! SOCKS5 (RFC 1928), the part that matters: no password, CONNECT only, names and addresses of version 4.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::WISH;
use crate::dial::To;
use crate::door::Fuse;
use crate::prefixed::Prefixed;
use crate::session::Session;
use crate::way::{Outside, Way};

const GRANTED: u8 = 0;
const NOT_ALLOWED: u8 = 2;
const NO_SUCH_COMMAND: u8 = 7;
const NO_SUCH_ADDRESS: u8 = 8;

pub(super) async fn serve(mut stream: Prefixed<TcpStream>, fuse: &Fuse, session: &Arc<Session>, outside: &Arc<Outside>) -> bool {
    let (to, port) = match timeout(WISH, read_wish(&mut stream)).await {
        Ok(Ok(Ok(wish))) => wish,
        Ok(Ok(Err(code))) => return answer(&mut stream, code).await.is_ok() && stream.shutdown().await.is_ok(),
        _ => return false,
    };
    let way = Way { session: Arc::clone(session), outside: Arc::clone(outside), to, port };
    let counted = match &way.to {
        To::Name(name) if belljar_policy::resolvable(&way.session.policy(), name) => way.session.address_of(name).is_some(),
        _ => true,
    };
    let decision = way.admit();
    if !decision.allow || !counted {
        return answer(&mut stream, NOT_ALLOWED).await.is_ok() && stream.shutdown().await.is_ok();
    }
    answer(&mut stream, GRANTED).await.is_ok() && way.go_on(stream, &decision, decision.scheme, fuse).await
}

/// The outer result is the connection's, the inner one what is answered.
async fn read_wish(stream: &mut Prefixed<TcpStream>) -> io::Result<Result<(To, u16), u8>> {
    let _version = stream.read_u8().await?;
    let mut methods = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&0) {
        stream.write_all(&[5, 0xff]).await?;
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.write_all(&[5, 0]).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [version, command, reserved, kind] = head;
    if version != 5 || reserved != 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let to = match kind {
        1 => {
            let mut octets = [0; 4];
            stream.read_exact(&mut octets).await?;
            Some(To::Address(Ipv4Addr::from(octets).into()))
        }
        3 => {
            let mut name = vec![0; usize::from(stream.read_u8().await?)];
            stream.read_exact(&mut name).await?;
            // A name that is an address in any spelling is no name: it had its own kind.
            belljar_policy::HostName::from_wire(&name).map(To::Name)
        }
        4 => {
            stream.read_exact(&mut [0; 16]).await?;
            None
        }
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let port = stream.read_u16().await?;
    Ok(match to {
        _ if command != 1 => Err(NO_SUCH_COMMAND),
        Some(to) if port != 0 => Ok((to, port)),
        _ => Err(NO_SUCH_ADDRESS),
    })
}

async fn answer(stream: &mut Prefixed<TcpStream>, code: u8) -> io::Result<()> {
    stream.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}
