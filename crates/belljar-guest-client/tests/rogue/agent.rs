//! An agent that has the token, shakes hands as it should, and then does what a test wants.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use belljar_guest_client::{AsyncStream, Connect, Credentials, GuestClient, Patience};
use belljar_guest_protocol::{
    AgentHello, ClientHello, ClientProof, Decoder, Frame, FrameKind, MAX_REQUEST, Nonce, Proofs, SPOKEN, Welcome, decode, encode,
    encode_frame,
};
use belljar_types::{ExecutionId, SandboxId, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

pub(crate) type Behaviour = Arc<dyn Fn(Rogue, Frame) -> tokio::task::JoinHandle<()> + Send + Sync>;

/// One connection of the rogue's, after it has proved itself.
pub(crate) struct Rogue {
    stream: DuplexStream,
    decoder: Decoder,
    accepted: Arc<AtomicU64>,
}

impl Rogue {
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        loop {
            match self.decoder.next_frame() {
                Ok(Some(frame)) => return Some(frame),
                Ok(None) => {}
                Err(_) => return None,
            }
            if self.stream.read_buf(self.decoder.buffer()).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Sends bytes and counts those that the client took.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) -> bool {
        let sent = self.stream.write_all(bytes).await.is_ok();
        self.accepted.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        sent
    }

    pub(crate) async fn say(&mut self, kind: FrameKind, call: u16, body: &[u8]) -> bool {
        self.raw(&encode_frame(kind, call, body)).await
    }
}

struct Host {
    credentials: Credentials,
    behaviour: Behaviour,
    accepted: Arc<AtomicU64>,
}

#[async_trait]
impl Connect for Host {
    async fn connect(&self) -> io::Result<Box<dyn AsyncStream>> {
        let (ours, theirs) = duplex(64 << 10);
        let (credentials, behaviour, accepted) = (self.credentials.clone(), Arc::clone(&self.behaviour), Arc::clone(&self.accepted));
        tokio::spawn(async move {
            let mut rogue = Rogue { stream: theirs, decoder: Decoder::new(MAX_REQUEST), accepted };
            let Some(frame) = rogue.frame().await else { return };
            let hello: ClientHello = decode(&frame.body).unwrap();
            let nonce = Nonce::from([6; 32]);
            let proofs = Proofs {
                token: &credentials.token,
                sandbox: &credentials.sandbox,
                execution: &credentials.execution,
                generation: SPOKEN.newest,
                client_nonce: &hello.nonce,
                agent_nonce: &nonce,
            };
            rogue.say(FrameKind::AgentHello, 0, &encode(&AgentHello { generations: SPOKEN, nonce, proof: proofs.agent() })).await;
            let Some(frame) = rogue.frame().await else { return };
            let proof: ClientProof = decode(&frame.body).unwrap();
            assert!(proofs.client_proved(&proof.proof));
            rogue.say(FrameKind::Welcome, 0, &encode(&Welcome { agent_version: "rogue".into() })).await;
            if let Some(request) = rogue.frame().await {
                behaviour(rogue, request).await.unwrap();
            }
        });
        Ok(Box::new(ours))
    }
}

/// A client of a rogue that answers the first request of each connection with `behaviour`.
pub(crate) fn client<F, Fut>(behaviour: F) -> (GuestClient, Arc<AtomicU64>)
where
    F: Fn(Rogue, Frame) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let credentials = Credentials { sandbox: SandboxId::random(), execution: ExecutionId::random(), token: Secret::new([3; 32]) };
    let accepted = Arc::<AtomicU64>::default();
    let behaviour: Behaviour = Arc::new(move |rogue, frame| tokio::spawn(behaviour(rogue, frame)));
    let host = Host { credentials: credentials.clone(), behaviour, accepted: Arc::clone(&accepted) };
    let patience = Patience { heartbeat_every: Duration::from_millis(50), silence_limit: Duration::from_millis(300) };
    (GuestClient::with_patience(Arc::new(host), credentials, patience), accepted)
}
