//! Streams: what they hold, what breaks them, and how they end when their sandbox does.

use std::io::{ErrorKind, Read};

use serde_json::{Value, json};

use crate::wire::{Wire, frame, shell};

const START: &str = "/process.Process/Start";

fn last(messages: &[(u8, Value)]) -> &Value {
    let (flags, message) = messages.last().unwrap();
    assert_eq!(*flags, 2, "the last message of a stream says so");
    message
}

#[test]
fn a_command_is_a_stream_from_its_start_to_its_end() {
    let wire = Wire::open();
    let guest = wire.sandbox(&json!({ "envVars": { "WHO": "there" } }));
    let answer = guest.stream(START, &frame(&shell("printf \"$WHO\"; exit 3")));
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: application/connect+json"), "{}", answer.head);
    let messages = answer.messages();
    assert!(messages[0].1["event"]["start"]["pid"].as_u64().unwrap() > 0);
    assert_eq!(messages[1].1["event"]["data"]["stdout"], "dGhlcmU=");
    let end = &messages[2].1["event"]["end"];
    assert_eq!((end["exitCode"].as_i64(), end["error"].as_str()), (Some(3), Some("exit status 3")));
    assert_eq!(*last(&messages), json!({}));
}

#[test]
fn what_is_no_message_is_refused_in_a_way_clients_understand() {
    let wire = Wire::open();
    let guest = wire.sandbox(&json!({}));
    let whole = frame(&shell("true"));
    let cases: [(&[u8], &str); 6] = [
        (b"", "invalid_argument"),
        (&whole[..whole.len() - 1], "invalid_argument"),
        (b"\0\0\0\0\x03{x}", "invalid_argument"),
        (b"\x01\0\0\0\x02{}", "invalid_argument"),
        (b"\0\xff\xff\xff\xff", "resource_exhausted"),
        (b"\0\0\0\0\x02{}", "invalid_argument"),
    ];
    for (bytes, code) in cases {
        let answer = guest.stream(START, bytes);
        assert_eq!(answer.status, 200, "{bytes:?}");
        assert_eq!(last(&answer.messages())["error"]["code"], code, "{bytes:?}");
    }
    let unary = |body: &[u8], kind: &str| {
        guest.daemon("POST", "/filesystem.Filesystem/Stat", &[("X-Access-Token", &guest.token), ("Content-Type", kind)], body)
    };
    assert_eq!(unary(b"{", "application/json").json()["code"], "invalid_argument");
    assert_eq!(unary(b"{\"path\":\"/no/such\"}", "application/json").json()["code"], "not_found");
    assert_eq!(unary(b"{}", "application/proto").status, 415);
    assert_eq!(last(&guest.stream(START, &frame(&shell("true"))).messages()), &json!({}), "it still works");
}

#[test]
fn a_kill_resets_the_streams_of_its_sandbox_and_the_gateway_says_so_at_once() {
    let wire = Wire::open();
    let guest = wire.sandbox(&json!({}));
    let headers = [("X-Access-Token", guest.token.as_str()), ("Content-Type", "application/connect+json")];
    let mut stream = wire.send("POST", START, &guest.addressed(&headers), &frame(&shell("sleep 1000")));
    let mut piece = [0; 4096];
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("\"pid\"") {
        let count = stream.read(&mut piece).unwrap();
        assert_ne!(count, 0, "the stream ended");
        seen.extend_from_slice(&piece[..count]);
    }
    assert_eq!(guest.kill(), 204);
    let gone = guest.daemon("GET", "/health", &[], b"");
    assert_eq!(gone.status, 502);
    assert_eq!(gone.json(), json!({ "sandboxId": guest.id, "message": "The sandbox was not found", "code": 502 }));
    let end = loop {
        match stream.read(&mut piece) {
            Ok(0) => panic!("it ended as if all were well"),
            Ok(_) => {}
            Err(error) => break error.kind(),
        }
    };
    assert_eq!(end, ErrorKind::ConnectionReset);
    assert_eq!(guest.kill(), 404, "there is nothing to kill any more");
}
