//! A process over a WebSocket.

use belljar_testkit::block_on;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::scene::{Client, Scene};

struct Line(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Line {
    async fn open(client: &Client, path: &str) -> Self {
        let mut request = format!("ws://{}{path}", client.address).into_client_request().unwrap();
        request.headers_mut().insert("x-api-key", client.key.as_deref().unwrap().parse().unwrap());
        Self(tokio_tungstenite::connect_async(request).await.unwrap().0)
    }

    async fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn input(&mut self, offset: u64, bytes: &[u8]) {
        let message = [&[0][..], &offset.to_be_bytes(), bytes].concat();
        self.0.send(Message::binary(message)).await.unwrap();
    }

    /// The next JSON of a type; output that comes before it is collected.
    async fn until(&mut self, kind: &str, output: &mut Vec<u8>) -> Value {
        loop {
            match self.0.next().await.unwrap().unwrap() {
                Message::Binary(bytes) => {
                    let offset = u64::from_be_bytes(bytes[1..9].try_into().unwrap());
                    assert_eq!((bytes[0], offset), (1, output.len() as u64));
                    output.extend_from_slice(&bytes[9..]);
                }
                Message::Text(text) => {
                    let value: Value = serde_json::from_str(&text).unwrap();
                    if value["type"] == kind {
                        return value;
                    }
                    assert_ne!(value["type"], "error", "{value}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn bytes_go_both_ways_and_the_end_is_told() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let mut line = Line::open(ours, &format!("{sandbox}/ws")).await;
        let mut output = Vec::new();
        line.say(json!({"type": "start", "id": "echo", "argv": ["cat"], "stdin": true})).await;
        assert_eq!(line.until("started", &mut output).await["process"]["id"], "echo");
        line.input(0, b"hello ").await;
        line.input(u64::MAX, b"there").await;
        line.input(6, b"there").await;
        line.say(json!({"type": "nonsense"})).await;
        assert_eq!(line.until("refused", &mut output).await["problem"]["code"], "invalid");
        line.say(json!({"type": "eof"})).await;
        let exit = line.until("exit", &mut output).await;
        assert_eq!((String::from_utf8_lossy(&output).as_ref(), &exit["exit_code"]), ("hello there", &json!(0)));
        while let Some(Ok(message)) = line.0.next().await {
            assert!(message.is_close(), "{message:?}");
        }
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn a_terminal_has_a_size_and_takes_signals() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let mut line = Line::open(ours, &format!("{sandbox}/ws")).await;
        let mut output = Vec::new();
        let command = "trap 'stty size; echo changed' WINCH; trap 'echo bye; exit 5' TERM; stty size; while :; do sleep 0.05; done";
        line.say(json!({"type": "start", "argv": ["bash", "-c", command], "stdin": true, "pty": {"columns": 80, "rows": 24}})).await;
        line.until("started", &mut output).await;
        let mut seen = async |line: &mut Line, wanted: &str| {
            while !String::from_utf8_lossy(&output).contains(wanted) {
                match line.0.next().await.unwrap().unwrap() {
                    Message::Binary(bytes) => output.extend_from_slice(&bytes[9..]),
                    other => assert!(!other.is_close(), "{other:?}"),
                }
            }
        };
        seen(&mut line, "24 80").await;
        line.say(json!({"type": "resize", "columns": 100, "rows": 30})).await;
        seen(&mut line, "30 100").await;
        line.say(json!({"type": "signal", "signal": "TERM"})).await;
        seen(&mut line, "bye").await;
        assert_eq!(line.until("exit", &mut output).await["exit_code"], 5);
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn who_attaches_again_goes_on_at_the_byte_and_much_flows_both_ways() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let process = json!({"id": "mirror", "argv": ["cat"], "stdin": true, "spool": {"overflow": "slow"}});
        ours.post(&format!("{sandbox}/processes"), &process).await.ok();
        let mut output = Vec::new();
        let mut line = Line::open(ours, &format!("{sandbox}/processes/mirror/ws")).await;
        line.until("attached", &mut output).await;
        line.input(0, b"first").await;
        line.until("stdin", &mut output).await;
        while output.len() < 5 {
            if let Some(Ok(Message::Binary(bytes))) = line.0.next().await {
                output.extend_from_slice(&bytes[9..]);
            }
        }
        drop(line);

        let path = format!("{sandbox}/processes/mirror/ws?stdout={}", output.len());
        let mut line = Line::open(ours, &path).await;
        let attached = line.until("attached", &mut output).await;
        assert_eq!(attached["process"]["stdin_offset"], 5);
        let (mut send, mut receive) = line.0.split();
        let much = belljar_testkit::pattern(8_000_000);
        let sent = much.clone();
        let sending = tokio::spawn(async move {
            for piece in sent.chunks(60_000) {
                let message = [&[0][..], &u64::MAX.to_be_bytes(), piece].concat();
                send.send(Message::binary(message)).await.unwrap();
            }
            send.send(Message::text(json!({"type": "eof"}).to_string())).await.unwrap();
        });
        while let Some(Ok(message)) = receive.next().await {
            if let Message::Binary(bytes) = message {
                output.extend_from_slice(&bytes[9..]);
            }
        }
        sending.await.unwrap();
        assert_eq!(output.len(), much.len() + 5);
        assert!(output[5..] == much);
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn what_cannot_be_started_is_told() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        for (message, field) in [(json!({"type": "start"}), "argv"), (json!({"type": "eof"}), "type")] {
            let mut line = Line::open(ours, &format!("{sandbox}/ws")).await;
            line.say(message).await;
            let Some(Ok(Message::Text(text))) = line.0.next().await else { panic!("no reason was given") };
            let problem: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(problem["problem"]["field"], field, "{text}");
        }
        assert_eq!(ours.get(&format!("{sandbox}/ws")).await.problem(426)["code"], "upgrade_required");
        ours.delete(&sandbox).await.ok();
    });
}
