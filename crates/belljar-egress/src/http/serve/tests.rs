//! A connection between a program and a site that are both played here, under a policy that changes.

use std::net::Ipv4Addr;
use std::sync::Arc;

use belljar_policy::{Compiled, Format, HostName, Operator, parse};
use belljar_ports::Toll;
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::sync::mpsc;

use super::*;
use crate::Event;
use crate::dns::Resolver;
use crate::session::Session;
use crate::uplink::Uplink;
use crate::way::Outside;

/// Longer than anything here takes: a connection that is not cut must not hold the tests up.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
struct Free;

impl Toll for Free {
    fn leaving(&self, bytes: u64) -> u64 {
        bytes
    }

    fn entering(&self, bytes: u64) -> u64 {
        bytes
    }
}

/// Both paths are conditions, so that the connection is allowed and read either way.
fn allowing(path: &str) -> Arc<Compiled> {
    let text = format!(r#"{{"version":1,"network":{{"allow":[{{"id":"chat","hosts":["a.test"],"ports":[80],"paths":["{path}"]}}]}}}}"#);
    Arc::new(Compiled::new(&parse(&text, Format::Json).unwrap(), &Arc::new(Operator::default())).unwrap())
}

fn way(policy: Arc<Compiled>) -> (Way, mpsc::Receiver<Event>) {
    let (events, told) = mpsc::channel(64);
    let session =
        Session::new("sandbox123456789".parse().unwrap(), "default".parse().unwrap(), Ipv4Addr::LOCALHOST, policy, Arc::new(Free), events);
    let outside = Outside { resolver: Resolver::new(Vec::new()), uplink: Uplink::default(), tls: None, secrets: None };
    let to = To::Name(HostName::from_wire(b"a.test").unwrap());
    (Way { session: Arc::new(session), outside: Arc::new(outside), to, port: 80 }, told)
}

async fn hears(stream: &mut DuplexStream, end: &[u8]) {
    let mut heard = Vec::new();
    while !heard.ends_with(end) {
        heard.push(stream.read_u8().await.unwrap());
    }
}

#[tokio::test]
async fn a_websocket_ends_when_its_request_is_not_allowed_any_more() {
    let (way, mut told) = way(allowing("/chat/**"));
    let (mut program, near) = duplex(1 << 16);
    let (far, mut site) = duplex(1 << 16);
    let (client_read, client_write) = tokio::io::split(Box::new(near) as Box<dyn Stream>);
    let sides = Sides { client_read, client_write, from_client: Reader::default(), upstream: Some(Connected::over(Box::new(far))) };
    let session = Arc::clone(&way.session);
    let served = tokio::spawn(async move { serve_all(&way, sides, Upstream::Plain).await });
    let asked = b"GET /chat/x HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    program.write_all(asked).await.unwrap();
    hears(&mut site, b"\r\n\r\n").await;
    site.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await.unwrap();
    hears(&mut program, b"\r\n\r\n").await;
    // The control: under the policy it began with it goes on, and so it does under one that allows it as well.
    for (said, policy) in [(b"one", "/chat/x"), (b"two", "/elsewhere")] {
        program.write_all(said).await.unwrap();
        hears(&mut site, said).await;
        site.write_all(said).await.unwrap();
        hears(&mut program, said).await;
        session.change(allowing(policy));
    }
    let whole = timeout(PATIENCE, served).await.expect("it is cut").unwrap();
    assert!(!whole, "and not as if it had ended by itself");
    assert_eq!(program.read(&mut [0; 1]).await.unwrap(), 0);
    assert_eq!(site.read(&mut [0; 1]).await.unwrap(), 0);
    let mut cut = Vec::new();
    while let Ok(event) = told.try_recv() {
        cut.extend((event.kind == EventKind::Cut).then_some((event.rule, event.reason)));
    }
    assert_eq!(cut, [("chat".to_owned(), "its policy changed".to_owned())]);
}
