//! The client against an agent that has the token and then says anything: no panic, no endless wait, no endless list.
#![no_main]

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use belljar_guest_client::{AsyncStream, Connect, Credentials, GuestClient};
use belljar_guest_protocol::{
    AgentHello, ClientHello, Decoder, FrameKind, MAX_REQUEST, Nonce, Proofs, SPOKEN, Welcome, decode, encode, encode_frame,
};
use belljar_ports::Guest;
use belljar_types::{ByteRange, ExecutionId, GuestPath, ListOptions, Offsets, OutputEvent, SandboxId, SearchQuery, Secret, StreamKind};
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

struct Liar {
    credentials: Credentials,
    says: Vec<u8>,
}

async fn frame(stream: &mut DuplexStream, decoder: &mut Decoder) -> Option<Vec<u8>> {
    loop {
        if let Some(frame) = decoder.next_frame().ok()? {
            return Some(frame.body.to_vec());
        }
        if stream.read_buf(decoder.buffer()).await.ok()? == 0 {
            return None;
        }
    }
}

async fn lie(mut stream: DuplexStream, credentials: Credentials, says: Vec<u8>) -> Option<()> {
    let mut decoder = Decoder::new(MAX_REQUEST);
    let hello: ClientHello = decode(&frame(&mut stream, &mut decoder).await?).ok()?;
    let nonce = Nonce::from([6; 32]);
    let Credentials { token, sandbox, execution } = &credentials;
    let proofs = Proofs { token, sandbox, execution, generation: 1, client_nonce: &hello.nonce, agent_nonce: &nonce };
    let hello = AgentHello { generations: SPOKEN, nonce, proof: proofs.agent() };
    stream.write_all(&encode_frame(FrameKind::AgentHello, 0, &encode(&hello))).await.ok()?;
    frame(&mut stream, &mut decoder).await?;
    let welcome = Welcome { agent_version: "1".into() };
    stream.write_all(&encode_frame(FrameKind::Welcome, 0, &encode(&welcome))).await.ok()?;
    frame(&mut stream, &mut decoder).await?;
    stream.write_all(&says).await.ok()
}

#[async_trait]
impl Connect for Liar {
    async fn connect(&self) -> io::Result<Box<dyn AsyncStream>> {
        let (ours, theirs) = duplex(4096);
        tokio::spawn(lie(theirs, self.credentials.clone(), self.says.clone()));
        Ok(Box::new(ours))
    }
}

/// An honest first answer for the verbs that have one, so that what follows is reached.
fn first(choice: u8) -> Vec<u8> {
    // A process with the id that is asked for; a file; nothing.
    let process = [&[0x8b, 0x61, b'p', 0x01, 0x80, 0xf6, 0x64][..], b"user", &[0xf4, 0x00, 0xf6, 0x00, 0x00, 0x00]].concat();
    let file = vec![0x8a, 0x42, b'/', b'x', 0x00, 0x01, 0x00, 0x00, 0x00, 0xf6, 0xf6, 0x00, 0xf6];
    let body = match choice % 12 {
        4 => process,
        5 => file,
        _ => encode(&()),
    };
    encode_frame(FrameKind::Response, 1, &body).to_vec()
}

/// The frames, whatever they are; a kind of 0 stands for bytes that are no frame.
fn wire(frames: Vec<(u8, u8, Vec<u8>)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, call, body) in frames {
        if kind % 16 != 0 {
            bytes.extend((body.len() as u32).to_le_bytes());
            bytes.extend([kind % 16, 0, if call > 250 { call } else { 1 }, 0]);
        }
        bytes.extend(body);
    }
    bytes
}

libfuzzer_sys::fuzz_target!(|input: (u8, bool, Vec<(u8, u8, Vec<u8>)>)| {
    let (choice, answered, frames) = input;
    let mut says = if answered { first(choice) } else { Vec::new() };
    says.extend(wire(frames));
    let credentials = Credentials { sandbox: SandboxId::random(), execution: ExecutionId::random(), token: Secret::new([3; 32]) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let client = GuestClient::new(Arc::new(Liar { credentials: credentials.clone(), says }), credentials);
        let path = GuestPath::new("/x").expect("a path");
        let id = "p".parse().expect("an id");
        match choice % 12 {
            0 => drop(client.stat(&path, None).await),
            1 => drop(
                client.list(&path, &ListOptions { max_entries: 10, ..ListOptions::default() }).await.map(|all| assert!(all.len() <= 10)),
            ),
            2 => drop(client.processes().await),
            3 => drop(client.ports().await),
            4 => {
                if let Ok(mut output) = client.attach(&id, Offsets::default()).await {
                    let mut next = Offsets::default();
                    while let Some(Ok(event)) = output.next().await {
                        let (stream, from, to) = match event {
                            OutputEvent::Data { stream, offset, bytes } => (stream, offset, offset + bytes.len() as u64),
                            OutputEvent::Gap { stream, from, to } => (stream, from, to),
                            OutputEvent::Exit(_) => continue,
                        };
                        let due = if stream == StreamKind::Stdout { &mut next.stdout } else { &mut next.stderr };
                        assert!(from == *due && to > from, "output has holes");
                        *due = to;
                    }
                }
            }
            5 => {
                if let Ok(mut content) = client.read_file(&path, ByteRange { offset: 0, length: Some(100) }, None).await {
                    let mut read = 0;
                    while let Some(Ok(bytes)) = content.bytes.next().await {
                        read += bytes.len();
                    }
                    assert!(read <= 100);
                }
            }
            6 => {
                if let Ok(mut events) = client.watch(&path, true, None).await {
                    while let Some(Ok(_)) = events.next().await {}
                }
            }
            7 => {
                let query = SearchQuery { user: None, root: path, name: None, content: None, max_hits: 3 };
                if let Ok(hits) = client.search(&query).await {
                    assert!(hits.filter(|hit| std::future::ready(hit.is_ok())).count().await <= 3);
                }
            }
            8 => drop(client.hello().await),
            9 => drop(client.write_stdin(&id, 0, vec![7; 300].into()).await),
            10 => drop(client.get_xattr(&path, "user.x", None).await),
            _ => {
                if let Ok(mut tunnel) = client.connect(80).await {
                    let _ = tunnel.write(vec![7; 300].into()).await;
                    let _ = tunnel.finish().await;
                    while let Ok(Some(_)) = tunnel.read().await {}
                }
            }
        }
    });
});
