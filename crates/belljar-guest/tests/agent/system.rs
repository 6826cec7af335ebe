//! The sandbox as a whole: identity, ports, tunnels, metrics.

use std::collections::BTreeMap;

use belljar_guest_client::{Credentials, GuestClient};
use belljar_ports::{Guest, GuestError};
use belljar_types::{ExecutionId, SandboxId, Secret};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::harness::{TestAgent, ToAddress, finish, shell};

#[tokio::test]
async fn the_agent_says_who_it_is() {
    let agent = TestAgent::start().await;
    let info = agent.client.hello().await.unwrap();
    assert_eq!((&info.sandbox, &info.execution, info.generation), (&agent.credentials.sandbox, &agent.credentials.execution, 2));
}

#[tokio::test]
async fn a_client_with_the_wrong_token_finds_no_agent_and_gets_nothing() {
    let agent = TestAgent::start().await;
    let wrong = Credentials { token: Secret::new([1; 32]), ..agent.credentials.clone() };
    let client = GuestClient::new(std::sync::Arc::new(ToAddress(agent.address)), wrong);
    assert!(matches!(client.hello().await, Err(GuestError::Misbehaved { .. })));
}

#[tokio::test]
async fn a_renewed_agent_knows_only_its_new_name() {
    let agent = TestAgent::start().await;
    let new = Credentials { sandbox: SandboxId::random(), execution: ExecutionId::random(), token: Secret::new([9; 32]) };
    // Without a clock: this machine's own would be set.
    let env = BTreeMap::from([("BRANCH".to_owned(), "b".to_owned())]);
    agent.client.renew(&new, None, None, None, env).await.unwrap();
    let client = GuestClient::new(std::sync::Arc::new(ToAddress(agent.address)), new.clone());
    assert_eq!(client.hello().await.unwrap().sandbox, new.sandbox);
    let (_, output) = client.start_attached(&shell("echo $BRANCH")).await.unwrap();
    assert_eq!(finish(output).await.unwrap().text(), "b\n", "what is started from now on has the new environment");
    let old = GuestClient::new(std::sync::Arc::new(ToAddress(agent.address)), agent.credentials.clone());
    assert!(old.hello().await.is_err());
}

#[tokio::test]
async fn listening_ports_are_found_with_their_owner() {
    let agent = TestAgent::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let found = agent.client.ports().await.unwrap();
    let ours = found.iter().find(|found| found.port == port).unwrap();
    assert_eq!((ours.address, ours.pid), ("127.0.0.1".parse().unwrap(), Some(std::process::id())));
    assert!(!found.iter().any(|found| found.port == agent.address.port()), "the agent's own port is its own business");
}

#[tokio::test]
async fn a_tunnel_carries_both_ways_at_once_and_ends_one_way_at_a_time() {
    let agent = TestAgent::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let big = 3_000_000;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // Says a lot before it listens: a tunnel that moved one way at a time would stand still.
        stream.write_all(&vec![1; big]).await.unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.unwrap();
        stream.write_all(format!("heard {}", heard.len()).as_bytes()).await.unwrap();
    });
    let mut tunnel = agent.client.connect(port).await.unwrap();
    let mut received = Vec::new();
    tunnel.write(Bytes::from(vec![2; 100_000])).await.unwrap();
    while received.len() < big {
        received.extend_from_slice(&tunnel.read().await.unwrap().unwrap());
    }
    tunnel.write(Bytes::from(vec![2; 200_000])).await.unwrap();
    tunnel.finish().await.unwrap();
    while let Some(bytes) = tunnel.read().await.unwrap() {
        received.extend_from_slice(&bytes);
    }
    assert_eq!(&received[big..], b"heard 300000");
    server.await.unwrap();
    let closed = agent.client.connect(port).await.err().unwrap();
    assert!(matches!(closed, GuestError::Refused { errno: 111, .. }), "{closed:?}");
}

#[tokio::test]
async fn metrics_are_plausible() {
    let agent = TestAgent::start().await;
    let before = agent.client.metrics().await.unwrap();
    agent.shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done").await;
    let after = agent.client.metrics().await.unwrap();
    assert!(after.cpus >= 1 && after.processes >= 1 && after.memory_total_bytes > after.memory_used_bytes && after.memory_used_bytes > 0);
    assert!(after.disk_total_bytes > after.disk_used_bytes);
    assert!(after.cpu_micros > before.cpu_micros);
}
