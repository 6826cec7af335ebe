//! Strangers and broken clients at the agent's port.

use std::time::Duration;

use belljar_guest_protocol::{ClientHello, FrameKind, Generations, Nonce, encode, encode_frame, frame_header};
use belljar_ports::Guest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::harness::TestAgent;

const LONG: Duration = Duration::from_secs(60);

/// Waits until the agent hangs up, and gives what it said before.
async fn until_hang_up(stream: &mut TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    let read = async {
        let mut buffer = [0u8; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            said.extend_from_slice(&buffer[..count]);
        }
    };
    tokio::time::timeout(LONG, read).await.expect("the agent hangs up");
    said
}

#[tokio::test]
async fn whoever_is_not_the_gateway_is_hung_up_on_before_a_word() {
    let agent = TestAgent::start().await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut stream = socket.connect(agent.address).await.unwrap();
    let _ = stream.write_all(&encode_frame(FrameKind::ClientHello, 0, &encode(&hello(1, 1)))).await;
    assert!(until_hang_up(&mut stream).await.is_empty());
    assert!(agent.client.hello().await.is_ok());
}

fn hello(oldest: u16, newest: u16) -> ClientHello {
    ClientHello { generations: Generations { oldest, newest }, nonce: Nonce::from([5; 32]) }
}

#[tokio::test]
async fn nonsense_is_hung_up_on_and_hurts_nobody_else() {
    let agent = TestAgent::start().await;
    let huge = frame_header(FrameKind::ClientHello, 0, u32::MAX).to_vec();
    let request_first = encode_frame(FrameKind::Request, 1, &[1, 0, 0x80]).to_vec();
    let wrong_proof =
        [encode_frame(FrameKind::ClientHello, 0, &encode(&hello(1, 1))), encode_frame(FrameKind::ClientProof, 0, &[0x81, 0x40])].concat();
    let malformed = encode_frame(FrameKind::ClientHello, 0, &[0xff; 100]).to_vec();
    for bytes in [huge, request_first, wrong_proof, malformed, b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0xff; 5000]] {
        let mut stream = TcpStream::connect(agent.address).await.unwrap();
        let _ = stream.write_all(&bytes).await;
        until_hang_up(&mut stream).await;
    }
    assert!(agent.client.hello().await.is_ok());
}

#[tokio::test]
async fn silent_strangers_are_hung_up_on_and_do_not_keep_the_host_out_for_long() {
    let agent = TestAgent::start().await;
    let mut strangers = Vec::new();
    for _ in 0..40 {
        strangers.push(TcpStream::connect(agent.address).await.unwrap());
    }
    for stranger in &mut strangers {
        until_hang_up(stranger).await;
    }
    assert!(agent.client.hello().await.is_ok());
}

#[tokio::test]
async fn an_agent_without_a_common_generation_says_what_it_speaks() {
    let agent = TestAgent::start().await;
    let mut stream = TcpStream::connect(agent.address).await.unwrap();
    stream.write_all(&encode_frame(FrameKind::ClientHello, 0, &encode(&hello(900, 901)))).await.unwrap();
    let said = until_hang_up(&mut stream).await;
    assert_eq!(said.get(4), Some(&(FrameKind::AgentHello as u8)));
}
