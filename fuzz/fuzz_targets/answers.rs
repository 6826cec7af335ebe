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
use belljar_types::{ExecutionId, GuestPath, ListOptions, Offsets, SandboxId, Secret};
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

libfuzzer_sys::fuzz_target!(|input: (u8, Vec<u8>)| {
    let (choice, says) = input;
    let credentials = Credentials { sandbox: SandboxId::random(), execution: ExecutionId::random(), token: Secret::new([3; 32]) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let client = GuestClient::new(Arc::new(Liar { credentials: credentials.clone(), says }), credentials);
        let path = GuestPath::new("/x").expect("a path");
        match choice % 6 {
            0 => drop(client.stat(&path, None).await),
            1 => drop(client.list(&path, &ListOptions::default()).await),
            2 => drop(client.processes().await),
            3 => drop(client.ports().await),
            4 => {
                if let Ok(mut output) = client.attach(&"p".parse().expect("an id"), Offsets::default()).await {
                    while let Some(Ok(_)) = output.next().await {}
                }
            }
            _ => {
                if let Ok(mut content) = client.read_file(&path, Default::default(), None).await {
                    while let Some(Ok(_)) = content.bytes.next().await {}
                }
            }
        }
    });
});
