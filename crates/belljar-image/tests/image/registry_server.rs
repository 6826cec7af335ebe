//! A registry: real HTTP on a real socket, with the token dance, redirects and failures on demand. It serves blobs and manifests from memory.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

/// What the registry holds and how it behaves.
#[derive(Default)]
pub(crate) struct Behaviour {
    /// By `blobs/<digest>` or `manifests/<tag or digest>`.
    pub(crate) content: BTreeMap<String, Vec<u8>>,
    /// Wants a bearer token, which only these credentials (or anybody, if `None`) get.
    pub(crate) token_for: Option<Option<String>>,
    /// Sends blobs elsewhere: to this origin, or to itself under another path when empty.
    pub(crate) redirect_blobs_to: Option<String>,
    /// How many times each blob is cut off in the middle before it comes whole.
    pub(crate) cut_off: usize,
    /// How many requests are answered 503 first.
    pub(crate) unavailable: usize,
    /// The first answer to a request with this in its path waits for a word.
    pub(crate) gate: Option<(String, Receiver<()>)>,
}

/// A running registry.
pub(crate) struct Registry {
    pub(crate) address: String,
    /// Requests as `path|authorization`.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

const TOKEN: &str = "a-token-for-tests";

impl Registry {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let server = Server { address: address.clone(), requests: Arc::clone(&requests), state: Arc::new(Mutex::new(behaviour)) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                std::thread::spawn(move || server.serve(&stream));
            }
        });
        Self { address, requests }
    }

    pub(crate) fn saw(&self, part: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|request| request.contains(part)).count()
    }
}

#[derive(Clone)]
struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
    state: Arc<Mutex<Behaviour>>,
}

struct Answer {
    status: &'static str,
    headers: Vec<String>,
    body: Vec<u8>,
    /// Close after this much of the body.
    cut: Option<usize>,
}

impl Answer {
    fn new(status: &'static str, body: Vec<u8>) -> Self {
        Self { status, headers: Vec::new(), body, cut: None }
    }

    fn header(mut self, header: String) -> Self {
        self.headers.push(header);
        self
    }
}

impl Server {
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                match line.trim_end() {
                    "" => break,
                    line => lines.push(line.to_owned()),
                }
            }
            let path = lines[0].split(' ').nth(1).unwrap_or_default().to_owned();
            let is_authorization = |line: &&String| line.to_ascii_lowercase().starts_with("authorization:");
            let authorization = lines.iter().find(is_authorization).map(|line| line[14..].trim().to_owned()).unwrap_or_default();
            self.requests.lock().unwrap().push(format!("{path}|{authorization}"));
            self.wait_at_gate(&path);
            let answer = self.answer(&path, &authorization);
            let mut stream = stream;
            let head = format!("HTTP/1.1 {}\r\nContent-Length: {}\r\n", answer.status, answer.body.len());
            let headers: String = answer.headers.iter().map(|header| format!("{header}\r\n")).collect();
            let body = &answer.body[..answer.cut.unwrap_or(answer.body.len())];
            if stream.write_all([head.as_bytes(), headers.as_bytes(), b"\r\n", body].concat().as_slice()).is_err() || answer.cut.is_some() {
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return;
            }
        }
    }

    fn wait_at_gate(&self, path: &str) {
        let gate = self.state.lock().unwrap().gate.take_if(|(part, _)| path.contains(part.as_str()));
        if let Some((_, word)) = gate {
            let _ = word.recv();
        }
    }

    fn answer(&self, path: &str, authorization: &str) -> Answer {
        let mut state = self.state.lock().unwrap();
        if state.unavailable > 0 {
            state.unavailable -= 1;
            return Answer::new("503 Service Unavailable", Vec::new());
        }
        if path.starts_with("/token?") {
            return self.token(&state, path, authorization);
        }
        if let Some(name) = path.strip_prefix("/elsewhere/") {
            return content(&mut state, name);
        }
        let Some(name) = path.strip_prefix("/v2/team/app/") else { return Answer::new("404 Not Found", Vec::new()) };
        if state.token_for.is_some() && authorization != format!("Bearer {TOKEN}") {
            let challenge = format!(
                "WWW-Authenticate: Bearer realm=\"http://{}/token\",service=\"tests\",scope=\"repository:team/app:pull\"",
                self.address
            );
            return Answer::new("401 Unauthorized", b"{}".to_vec()).header(challenge);
        }
        match &state.redirect_blobs_to {
            Some(origin) if name.starts_with("blobs/") => {
                Answer::new("307 Temporary Redirect", Vec::new()).header(format!("Location: {origin}/elsewhere/{name}"))
            }
            _ => content(&mut state, name),
        }
    }

    fn token(&self, state: &Behaviour, path: &str, authorization: &str) -> Answer {
        let asked_well = path.contains("service=tests") && path.contains("scope=repository");
        let known = match &state.token_for {
            Some(Some(basic)) => authorization == format!("Basic {basic}"),
            Some(None) => true,
            None => false,
        };
        if asked_well && known {
            Answer::new("200 OK", format!("{{\"token\": \"{TOKEN}\"}}").into_bytes())
        } else {
            Answer::new("401 Unauthorized", Vec::new())
        }
    }
}

fn content(state: &mut Behaviour, name: &str) -> Answer {
    let Some(bytes) = state.content.get(name).cloned() else { return Answer::new("404 Not Found", Vec::new()) };
    let mut answer = Answer::new("200 OK", bytes);
    if name.starts_with("blobs/") && state.cut_off > 0 {
        state.cut_off -= 1;
        answer.cut = Some(answer.body.len() / 2);
    }
    answer
}
