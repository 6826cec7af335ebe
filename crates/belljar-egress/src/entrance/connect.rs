//! HTTP's own way to ask a proxy: CONNECT for a tunnel, or a request with the whole address in it.

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::WISH;
use crate::door::{Fuse, authority};
use belljar_policy::Scheme;

use crate::http::{Head, Reader, refusal};
use crate::prefixed::Prefixed;
use crate::session::Session;
use crate::way::{Outside, Way};

pub(super) async fn serve(mut stream: Prefixed<TcpStream>, fuse: &Fuse, session: &Arc<Session>, outside: &Arc<Outside>) -> bool {
    let mut reader = Reader::default();
    let Ok(Ok(Some(bytes))) = timeout(WISH, reader.head(&mut stream)).await else { return false };
    let Ok(head) = Head::parse(&bytes) else { return say(&mut stream, 400, "this is no request for a proxy").await };
    let tunnel = head.method == "CONNECT";
    let wanted = if tunnel {
        authority(&head.target, None)
    } else {
        head.target.strip_prefix("http://").and_then(|rest| authority(host_of(rest), Some(80)))
    };
    let Some((to, port)) = wanted else { return say(&mut stream, 400, "the request names no host that can be asked for").await };
    let way = Way { session: Arc::clone(session), outside: Arc::clone(outside), to, port };
    if let crate::dial::To::Name(name) = &way.to
        && !name_is_admitted(&way, name)
    {
        return say(&mut stream, 403, "denied by network.limits.names_per_minute: too many different names in a minute").await;
    }
    let decision = way.admit();
    if !decision.allow {
        return say(&mut stream, 403, &decision.reason).await;
    }
    if tunnel {
        if stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_err() {
            return false;
        }
        return way.go_on(Prefixed::new(reader.rest(), stream), &decision, decision.scheme, fuse).await;
    }
    // What was read goes back in front, and is read again as any request is.
    way.go_on(Prefixed::new([bytes, reader.rest()].concat(), stream), &decision, Scheme::Http, fuse).await
}

/// A name that comes this way counts like one that was looked up, if it is allowed at all.
fn name_is_admitted(way: &Way, name: &belljar_policy::HostName) -> bool {
    !belljar_policy::resolvable(&way.session.policy(), name) || way.session.address_of(name).is_some()
}

fn host_of(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

async fn say(stream: &mut Prefixed<TcpStream>, status: u16, reason: &str) -> bool {
    let _gone = stream.write_all(&refusal(status, reason)).await;
    let _gone = stream.shutdown().await;
    true
}
