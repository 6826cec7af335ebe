//! One connection: the handshake, then one call after the other.

use std::rc::Rc;
use std::time::Duration;

use belljar_guest_line::{AsyncStream, Line, LineError, Patience};
use belljar_guest_protocol::{
    AgentHello, ClientHello, ClientProof, FrameKind, HANDSHAKE_LIMIT, MAX_HANDSHAKE, MAX_REQUEST, Malformed, Nonce, Proof, Proofs, SPOKEN,
    Welcome, decode, encode,
};

use crate::agent::{Agent, VERSION};
use crate::call::Call;
use crate::listen::Counted;

const GOODBYE: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
enum HandshakeError {
    #[error(transparent)]
    Line(#[from] LineError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("no common generation")]
    NoCommonGeneration,
    #[error("a frame out of turn")]
    OutOfTurn,
    #[error("a wrong proof")]
    Unproved,
    #[error("no randomness")]
    NoRandomness,
}

/// Talks to one client until it leaves or breaks the rules.
pub(crate) async fn run(agent: Rc<Agent>, stream: Box<dyn AsyncStream>, stranger: Counted) {
    let mut line = Line::new(stream, MAX_HANDSHAKE, Patience::default());
    let proved = tokio::time::timeout(HANDSHAKE_LIMIT, handshake(&agent, &mut line)).await;
    drop(stranger);
    let Ok(Ok(generation)) = proved else {
        // An agent that speaks no common generation has answered with its own; let that arrive.
        line.hang_up(GOODBYE).await;
        return;
    };
    line.set_limit(MAX_REQUEST);
    loop {
        // Whoever left has nothing to be told. Closing at once also lets a host that waits for it know that this connection is gone for good.
        let Ok(frame) = line.receive().await else { return };
        match frame.kind {
            FrameKind::Request => {}
            // What was under way when the last call ended.
            FrameKind::Ack | FrameKind::Data | FrameKind::End if frame.call == line.call() => continue,
            _ => break,
        }
        line.begin(frame.call);
        if Call::answer(&agent, &mut line, generation, frame.body).await.is_err() {
            break;
        }
        line.finish();
    }
    line.hang_up(GOODBYE).await;
}

async fn handshake(agent: &Agent, line: &mut Line<Box<dyn AsyncStream>>) -> Result<u16, HandshakeError> {
    let hello: ClientHello = expect(line, FrameKind::ClientHello).await?;
    let identity = agent.identity.borrow().clone();
    let mut nonce = [0u8; 32];
    getrandom::fill(&mut nonce).map_err(|_| HandshakeError::NoRandomness)?;
    let nonce = Nonce::from(nonce);
    let common = hello.generations.common(SPOKEN);
    let proofs = Proofs {
        token: &identity.token,
        sandbox: &identity.sandbox,
        execution: &identity.execution,
        generation: common.unwrap_or(0),
        client_nonce: &hello.nonce,
        agent_nonce: &nonce,
    };
    let proof = if common.is_some() { proofs.agent() } else { Proof::from([0; 32]) };
    say(line, FrameKind::AgentHello, &AgentHello { generations: SPOKEN, nonce, proof }).await?;
    let generation = common.ok_or(HandshakeError::NoCommonGeneration)?;
    let answer: ClientProof = expect(line, FrameKind::ClientProof).await?;
    if !proofs.client_proved(&answer.proof) {
        return Err(HandshakeError::Unproved);
    }
    say(line, FrameKind::Welcome, &Welcome { agent_version: VERSION.into() }).await?;
    Ok(generation)
}

async fn say<T: minicbor::Encode<()>>(line: &mut Line<Box<dyn AsyncStream>>, kind: FrameKind, body: &T) -> Result<(), LineError> {
    line.send(kind, encode(body).into()).await
}

async fn expect<T: for<'b> minicbor::Decode<'b, ()>>(line: &mut Line<Box<dyn AsyncStream>>, kind: FrameKind) -> Result<T, HandshakeError> {
    let frame = line.receive().await?;
    if frame.kind == kind { Ok(decode(&frame.body)?) } else { Err(HandshakeError::OutOfTurn) }
}
