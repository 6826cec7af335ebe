//! Clients that have the token and talk nonsense: the agent says so or hangs up, goes on serving others, and does not grow.

use std::time::Duration;

use belljar_guest_protocol::wire::{ProcessOnly, Watch, WriteFile};
use belljar_guest_protocol::{
    AgentHello, ClientHello, ClientProof, Decoder, Failure, FailureCode, Frame, FrameKind, MAX_FRAME, MAX_REQUEST, Nonce, Proofs, SPOKEN,
    Verb, decode, encode, encode_frame, frame_header,
};
use belljar_ports::Guest;
use belljar_types::{GuestPath, WriteOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::TestAgent;

const LONG: Duration = Duration::from_secs(60);

/// A connection that has proved itself and says whatever it wants from there on.
struct Raw {
    stream: TcpStream,
    decoder: Decoder,
}

impl Raw {
    async fn connect(agent: &TestAgent) -> Self {
        let mut raw = Self { stream: TcpStream::connect(agent.address).await.unwrap(), decoder: Decoder::new(MAX_FRAME) };
        let client_nonce = Nonce::from([5; 32]);
        raw.say(FrameKind::ClientHello, 0, &encode(&ClientHello { generations: SPOKEN, nonce: client_nonce })).await;
        let hello: AgentHello = decode(&raw.frame().await.unwrap().body).unwrap();
        let proofs = Proofs {
            token: &agent.credentials.token,
            sandbox: &agent.credentials.sandbox,
            execution: &agent.credentials.execution,
            generation: SPOKEN.newest,
            client_nonce: &client_nonce,
            agent_nonce: &hello.nonce,
        };
        raw.say(FrameKind::ClientProof, 0, &encode(&ClientProof { proof: proofs.client() })).await;
        assert_eq!(raw.frame().await.unwrap().kind, FrameKind::Welcome);
        raw
    }

    async fn bytes(&mut self, bytes: &[u8]) {
        // An agent that has hung up already is what some tests want.
        let _ = self.stream.write_all(bytes).await;
    }

    async fn say(&mut self, kind: FrameKind, call: u16, body: &[u8]) {
        self.bytes(&encode_frame(kind, call, body)).await;
    }

    async fn ask(&mut self, verb: u16, call: u16, body: &[u8]) {
        self.say(FrameKind::Request, call, &[&verb.to_le_bytes()[..], body].concat()).await;
    }

    /// The next frame that is not a heartbeat; `None` when the agent has hung up.
    async fn frame(&mut self) -> Option<Frame> {
        let read = async {
            loop {
                if let Some(frame) = self.decoder.next_frame().expect("the agent speaks well") {
                    if frame.kind != FrameKind::Heartbeat {
                        return Some(frame);
                    }
                } else if self.stream.read_buf(self.decoder.buffer()).await.unwrap_or(0) == 0 {
                    return None;
                }
            }
        };
        tokio::time::timeout(LONG, read).await.expect("the agent answers or hangs up")
    }

    async fn fails(&mut self, call: u16) -> Failure {
        let frame = self.frame().await.expect("a failure is no reason to hang up");
        assert_eq!((frame.kind, frame.call), (FrameKind::Failure, call));
        decode(&frame.body).unwrap()
    }

    async fn still_serves(&mut self, call: u16) {
        self.ask(Verb::Hello.number(), call, &encode(&())).await;
        let frame = self.frame().await.expect("the connection is still good");
        assert_eq!((frame.kind, frame.call), (FrameKind::Response, call));
    }
}

fn resident_bytes(agent: &TestAgent) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", agent.child.id())).unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn write_file(agent: &TestAgent, name: &str) -> Vec<u8> {
    encode(&WriteFile::new(&agent.path(name), &WriteOptions::default()))
}

#[tokio::test]
async fn an_unknown_verb_is_a_failure_and_no_hang_up() {
    let agent = TestAgent::start().await;
    let mut raw = Raw::connect(&agent).await;
    for (call, number) in (1..).zip([0, 29, 999, u16::MAX]) {
        raw.ask(number, call, &encode(&())).await;
        assert_eq!(raw.fails(call).await.known_code(), FailureCode::UnknownVerb);
    }
    for (call, short) in (100..).zip([&[][..], &[1]]) {
        raw.say(FrameKind::Request, call, short).await;
        assert_eq!(raw.fails(call).await.known_code(), FailureCode::UnknownVerb);
    }
    raw.still_serves(200).await;
}

#[tokio::test]
async fn a_body_that_makes_no_sense_is_a_failure_for_every_verb() {
    let agent = TestAgent::start().await;
    let mut raw = Raw::connect(&agent).await;
    let bodies: [&[u8]; 7] =
        [&[], &[0xff; 64], &[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], &[0x81; 4000], &[0x80], &[0x81, 0xf6], &[0xbf; 100]];
    let mut call = 0;
    let without_body = [Verb::Hello, Verb::Processes, Verb::Ports, Verb::Metrics, Verb::Wishes];
    for verb in Verb::ALL.iter().filter(|verb| !without_body.contains(verb)) {
        for body in bodies {
            call += 1;
            raw.ask(verb.number(), call, body).await;
            assert_eq!(raw.fails(call).await.known_code(), FailureCode::Invalid, "{verb:?} {body:?}");
            if matches!(verb, Verb::WriteFile | Verb::WriteStdin) {
                raw.say(FrameKind::End, call, &[]).await;
            }
        }
    }
    raw.still_serves(call + 1).await;
    assert!(agent.client.hello().await.is_ok());
}

#[tokio::test]
async fn frames_out_of_order_are_hung_up_on_and_hurt_nobody_else() {
    let agent = TestAgent::start().await;
    let watch = encode(&Watch { path: agent.path("").as_bytes().to_vec().into(), user: None, recursive: false });
    let watch = [&Verb::Watch.number().to_le_bytes()[..], &watch].concat();
    let write = [&Verb::WriteFile.number().to_le_bytes()[..], &write_file(&agent, "half")].concat();
    let hello = encode_frame(FrameKind::Request, 1, &[&Verb::Hello.number().to_le_bytes()[..], &encode(&())].concat());
    let kinds = [FrameKind::Response, FrameKind::Items, FrameKind::ClientHello, FrameKind::Welcome, FrameKind::Output, FrameKind::Notice];
    let mut nonsense: Vec<Vec<u8>> = kinds.iter().map(|kind| encode_frame(*kind, 1, b"x").to_vec()).collect();
    nonsense.extend([
        encode_frame(FrameKind::Data, 7, b"of no call").to_vec(),
        frame_header(FrameKind::Request, 1, MAX_REQUEST + 1).to_vec(),
        frame_header(FrameKind::Request, 1, u32::MAX).to_vec(),
        vec![0, 0, 0, 0, 99, 0, 1, 0],
        vec![0, 0, 0, 0, 5, 0x80, 1, 0],
        [encode_frame(FrameKind::Request, 1, &watch), hello.clone()].concat(),
        [encode_frame(FrameKind::Request, 1, &write), hello].concat(),
    ]);
    for bytes in nonsense {
        let mut raw = Raw::connect(&agent).await;
        raw.bytes(&bytes).await;
        while let Some(frame) = raw.frame().await {
            assert_eq!(frame.kind, FrameKind::Response, "only what was asked before is answered: {bytes:?}");
        }
    }
    assert!(agent.client.hello().await.is_ok());
}

#[tokio::test]
async fn half_a_frame_and_then_silence_ends_a_call_and_hurts_nobody_else() {
    let agent = TestAgent::start().await;
    let mut raw = Raw::connect(&agent).await;
    raw.ask(Verb::WriteFile.number(), 1, &write_file(&agent, "half")).await;
    raw.bytes(&frame_header(FrameKind::Data, 1, 1000)).await;
    raw.bytes(b"not a thousand").await;
    assert!(agent.client.hello().await.is_ok());
    assert!(raw.frame().await.is_none(), "the agent gives it up");
    assert!(agent.client.hello().await.is_ok());
}

#[tokio::test]
async fn an_agent_does_not_grow_with_what_is_claimed_or_left_half_done() {
    let agent = TestAgent::start().await;
    let before = resident_bytes(&agent);
    let mut half_done = Vec::new();
    for index in 0..100 {
        let mut raw = Raw::connect(&agent).await;
        raw.bytes(&frame_header(FrameKind::Request, 1, MAX_REQUEST)).await;
        raw.bytes(&vec![index; 1000]).await;
        half_done.push(raw);
    }
    let mut flood = Raw::connect(&agent).await;
    for call in 1..2000 {
        flood.ask(Verb::CloseStdin.number(), call, &encode(&ProcessOnly { id: "nobody".into() })).await;
        assert_eq!(flood.fails(call).await.known_code(), FailureCode::NoProcess);
    }
    // Content for a file that cannot be is taken and thrown away.
    let nowhere = GuestPath::new("/proc/nowhere/x").unwrap();
    flood.ask(Verb::WriteFile.number(), 2000, &encode(&WriteFile::new(&nowhere, &WriteOptions::default()))).await;
    for _ in 0..256 {
        flood.say(FrameKind::Data, 2000, &vec![0; MAX_FRAME as usize]).await;
    }
    flood.say(FrameKind::End, 2000, &[]).await;
    flood.fails(2000).await;
    flood.still_serves(2001).await;
    assert!(agent.client.hello().await.is_ok());
    let after = resident_bytes(&agent);
    assert!(after < before + (16 << 20), "{} KiB before, {} KiB after", before >> 10, after >> 10);
}
