//! A client that sends what it is told to and reads what comes, byte by byte.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

use belljar_testkit::{ServerProcess, block_on, most_memory};
use serde_json::{Value, json};

const SETTINGS: &str = "[sandboxes]\nallow_shared_kernel = true\n[log]\nfilter = \"warn\"\n";

struct Shared {
    users: usize,
    server: Option<ServerProcess>,
}

/// One server for all tests that run at the same time; the last one to leave stops it.
static SHARED: Mutex<Shared> = Mutex::new(Shared { users: 0, server: None });

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server with a key, for as long as a test lasts.
pub(crate) struct Wire {
    address: String,
    pub(crate) key: String,
}

/// An answer, taken apart.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The messages of a stream, each with its flags.
    pub(crate) fn messages(&self) -> Vec<(u8, Value)> {
        let mut rest = self.body.as_slice();
        let mut messages = Vec::new();
        while let [flags, a, b, c, d, left @ ..] = rest {
            let (message, after) = left.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
            messages.push((*flags, serde_json::from_slice(message).unwrap()));
            rest = after;
        }
        messages
    }
}

impl Wire {
    pub(crate) fn open() -> Self {
        let mut shared = shared();
        shared.users += 1;
        let server = shared.server.get_or_insert_with(|| block_on(ServerProcess::start(SETTINGS)));
        let key = std::fs::read_to_string(server.scope.data_dir.join("first-key")).unwrap();
        Self { address: server.url.trim_start_matches("http://").to_owned(), key: key.trim().replace("bj_", "e2b_") }
    }

    /// Sends a request and leaves the answer to be read.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n", self.address, body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{text}\r\n").as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        stream
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut bytes = Vec::new();
        self.send(method, path, headers, body).read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let body = bytes[end + 4..].to_vec();
        let body = if head.contains("transfer-encoding: chunked") { unchunked(&body) } else { body };
        Answer { status: head[9..12].parse().unwrap(), head, body }
    }

    /// A call of the control plane.
    pub(crate) fn control(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.ask(method, path, &[("X-API-Key", &self.key), ("Content-Type", "application/json")], &body)
    }

    /// The most memory the server ever had, in bytes.
    pub(crate) fn most_memory(&self) -> u64 {
        most_memory(shared().server.as_ref().unwrap().pid())
    }

    pub(crate) fn sandbox(&self, more: &Value) -> Guest<'_> {
        let mut body = json!({ "templateID": "base", "timeout": 120 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.control("POST", "/sandboxes", &body);
        assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
        let made = answer.json();
        let token = made["envdAccessToken"].as_str().unwrap_or_default().to_owned();
        Guest { wire: self, id: made["sandboxID"].as_str().unwrap().to_owned(), token }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let mut shared = shared();
        shared.users -= 1;
        if shared.users == 0 {
            shared.server = None;
        }
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        whole.extend_from_slice(&rest[line + 2..line + 2 + length]);
        rest = &rest[line + 4 + length..];
    }
    whole
}

/// A sandbox that is ended with its test.
pub(crate) struct Guest<'a> {
    wire: &'a Wire,
    pub(crate) id: String,
    pub(crate) token: String,
}

impl Guest<'_> {
    /// A call of the daemon with these headers beside those that say which sandbox.
    pub(crate) fn daemon(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.wire.ask(method, path, &self.addressed(headers), body)
    }

    pub(crate) fn addressed<'b>(&'b self, headers: &[(&'b str, &'b str)]) -> Vec<(&'b str, &'b str)> {
        let mut all = vec![("E2b-Sandbox-Id", self.id.as_str()), ("E2b-Sandbox-Port", "49983")];
        all.extend_from_slice(headers);
        all
    }

    /// Sends one message to a stream and reads it to its end.
    pub(crate) fn stream(&self, path: &str, frame: &[u8]) -> Answer {
        self.daemon("POST", path, &[("X-Access-Token", &self.token), ("Content-Type", "application/connect+json")], frame)
    }

    pub(crate) fn kill(&self) -> u16 {
        self.wire.control("DELETE", &format!("/sandboxes/{}", self.id), &Value::Null).status
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A message in its frame.
pub(crate) fn frame(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    let mut bytes = vec![0];
    bytes.extend_from_slice(&u32::try_from(text.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// A command as the SDKs send it.
pub(crate) fn shell(command: &str) -> Value {
    json!({ "process": { "cmd": "/bin/bash", "args": ["-l", "-c", command] }, "stdin": false })
}
