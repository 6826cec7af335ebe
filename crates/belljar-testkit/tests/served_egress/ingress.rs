//! The way in to programs of a sandbox, by host name: who is let in, what the program sees, and when it ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use belljar_testkit::block_on;
use belljar_types::{PauseKind, SandboxId};

use crate::scene::{CLASSES, DOMAIN, Scene};

/// Answers with the request as it got it; tries to set cookies; upgrades to an echo.
const PROGRAM: &str = r"
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        if self.headers.get('Upgrade'):
            self.send_response(101); self.send_header('Connection', 'upgrade'); self.send_header('Upgrade', 'echo'); self.end_headers(); self.wfile.flush()
            while True:
                data = self.connection.recv(4096)
                if not data: break
                self.connection.sendall(data)
            self.close_connection = True; return
        if self.path.startswith('/events'):
            chunked = self.path.endswith('chunked')
            self.send_response(200); self.send_header('Content-Type', 'text/event-stream')
            self.send_header(*(('Transfer-Encoding', 'chunked') if chunked else ('Connection', 'close'))); self.end_headers()
            self.close_connection = True
            import time
            while True:
                self.wfile.write(b'c\r\ndata: tick\n\n\r\n' if chunked else b'data: tick\n\n'); self.wfile.flush(); time.sleep(0.05)
        body = (self.path + '\n' + str(self.headers)).encode()
        self.send_response(200); self.send_header('Content-Length', str(len(body)))
        self.send_header('Set-Cookie', 'belljar_token=planted; Domain=boxes.example'); self.send_header('Set-Cookie', 'mine=1; Path=/; Domain=boxes.example; Secure'); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('127.0.0.1', 8000), Handler).serve_forever()
";

/// Asks the server itself, with every byte chosen; the answer as it came.
fn ask(scene: &Scene, target: &str, headers: &[(&str, &str)]) -> String {
    let mut stream = TcpStream::connect(scene.server.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(stream, "GET {target} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _cut = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

async fn token(scene: &Scene, sandbox: &SandboxId, port: u16, seconds: u64) -> String {
    scene.client.port_token(sandbox, port, seconds).await.unwrap().token
}

async fn serving(scene: &Scene, class: &str) -> SandboxId {
    let sandbox = scene.create(class, None).await;
    scene.start(&sandbox, PROGRAM).await;
    let ready = "while True:\n  try: socket.create_connection(('127.0.0.1', 8000)); break\n  except OSError: time.sleep(0.05)";
    assert_eq!(scene.python(&sandbox, ready).await.code, 0);
    sandbox
}

#[test]
fn a_program_is_reached_with_its_own_token_only_and_never_sees_one() {
    block_on(async {
        let scene = Scene::open().await;
        for class in CLASSES {
            let (sandbox, other) = (serving(&scene, class).await, serving(&scene, class).await);
            let host = format!("8000-{sandbox}.{DOMAIN}");
            let right = token(&scene, &sandbox, 8000, 600).await;
            let (wrong_port, wrong_sandbox) = (token(&scene, &sandbox, 8001, 600).await, token(&scene, &other, 8000, 600).await);
            let answer = ask(&scene, "/a?x=1", &[("Host", &host), ("X-Belljar-Token", &right)]);
            assert_eq!(status(&answer), 200, "{class}: the control: {answer}");
            assert!(answer.contains("/a?x=1") && !answer.contains(&right), "{class}: {answer}");
            assert!(
                answer.contains("mine=1; Path=/; Secure") && !answer.contains("planted"),
                "{class}: a program sets no cookie of ours: {answer}"
            );
            assert!(!answer.contains("Domain"), "{class}: and none that its neighbours are shown: {answer}");
            let come_from = format!("http://{host}/a?x=1&belljar_token={right}");
            let answer = ask(&scene, "/", &[("Host", &host), ("X-Belljar-Token", &right), ("Referer", &come_from)]);
            assert!(status(&answer) == 200 && !answer.contains(&right), "{class}: not even where it came from: {answer}");
            let come_from = come_from.replace("belljar_token", "other");
            let answer = ask(&scene, "/", &[("Host", &host), ("X-Belljar-Token", &right), ("Referer", &come_from)]);
            assert!(answer.contains("other="), "{class}: the control: {answer}");

            let flipped = if right.ends_with('0') { '1' } else { '0' };
            let forged = format!("{}{flipped}", &right[..right.len() - 1]);
            for (what, name, value) in [
                ("nothing", "X-Nothing", "x"),
                ("a forged token", "X-Belljar-Token", forged.as_str()),
                ("another port's", "X-Belljar-Token", &wrong_port),
                ("another sandbox's", "X-Belljar-Token", &wrong_sandbox),
                ("an empty one", "X-Belljar-Token", ""),
            ] {
                let answer = ask(&scene, "/", &[("Host", &host), (name, value)]);
                assert_eq!(status(&answer), 401, "{class}: {what}: {answer}");
            }
            let cookie = format!("belljar_token={right}");
            let both = ask(&scene, "/", &[("Host", &host), ("X-Belljar-Token", &forged), ("Cookie", &cookie)]);
            assert_eq!(status(&both), 401, "{class}: a wrong header is not made good by a cookie: {both}");
            let planted = format!("belljar_token={wrong_sandbox}; {cookie}; mine=2");
            let seen = ask(&scene, "/", &[("Host", &host), ("Cookie", &planted)]);
            assert_eq!(status(&seen), 200, "{class}: a neighbour's cookie shuts nobody out: {seen}");
            assert!(seen.contains("mine=2") && !seen.contains("belljar_token"), "{class}: {seen}");

            let moved = ask(&scene, &format!("/b?y=2&belljar_token={right}"), &[("Host", &host)]);
            assert_eq!(status(&moved), 303, "{class}: {moved}");
            let set = moved.lines().find(|line| line.to_ascii_lowercase().starts_with("set-cookie")).unwrap();
            assert!(set.contains("HttpOnly") && set.contains("Path=/") && !set.contains("Domain"), "{class}: {set}");
            assert!(moved.contains("/b?y=2\r\n"), "{class}: the token leaves the address: {moved}");

            let brief = token(&scene, &sandbox, 8000, 1).await;
            while status(&ask(&scene, "/", &[("Host", &host), ("X-Belljar-Token", &brief)])) != 401 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            scene.kill(&sandbox).await;
            scene.kill(&other).await;
        }
        scene.close();
    });
}

#[test]
fn names_that_are_not_a_ports_lead_to_no_program() {
    block_on(async {
        let scene = Scene::open().await;
        for class in CLASSES {
            let sandbox = serving(&scene, class).await;
            let right = token(&scene, &sandbox, 8000, 600).await;
            let shown = ("X-Belljar-Token", right.as_str());
            let good = format!("8000-{sandbox}.{DOMAIN}");
            for host in [good.clone(), good.to_ascii_uppercase()] {
                assert_eq!(status(&ask(&scene, "/", &[("Host", &host), shown])), 200, "{class}: the control: {host}");
            }
            for host in [
                format!("8000-{sandbox}.{DOMAIN}.evil.test"),
                format!("8000-{sandbox}.evil{DOMAIN}"),
                format!("0-{sandbox}.{DOMAIN}"),
                format!("99999-{sandbox}.{DOMAIN}"),
                format!("08000-{sandbox}.{DOMAIN}"),
                format!("8000-{sandbox}@{DOMAIN}"),
                format!("x.8000-{sandbox}.{DOMAIN}"),
            ] {
                let answer = ask(&scene, "/", &[("Host", &host), shown]);
                assert!([400, 401, 403, 404, 502].contains(&status(&answer)), "{class}: {host}: {answer}");
            }
            let two = ask(&scene, "/", &[("Host", "evil.test"), ("Host", &good), shown]);
            assert_ne!(status(&two), 200, "{class}: two hosts: {two}");
            let absolute = ask(&scene, &format!("http://{good}/"), &[("Host", "evil.test"), shown]);
            assert_ne!(status(&absolute), 200, "{class}: one host in the target, another in the header: {absolute}");
            agent_is_out_of_reach(&scene, &sandbox, class).await;
            scene.kill(&sandbox).await;
        }
        scene.close();
    });
}

/// The agent listens for the host alone; there is no way to it by a port.
async fn agent_is_out_of_reach(scene: &Scene, sandbox: &SandboxId, class: &str) {
    let inside = "for line in open('/proc/net/tcp').readlines()[1:]:\n  parts = line.split()\n  if parts[3] == '0A': print(int(parts[1].split(':')[1], 16))";
    let listening = scene.python(sandbox, inside).await.stdout;
    let others: Vec<&str> = listening.split_whitespace().filter(|port| *port != "8000").collect();
    assert!(class != "gvisor" || !others.is_empty(), "{class}: the agent is reached over TCP there: {listening}");
    for port in others {
        let number: u16 = port.parse().unwrap();
        let token = token(scene, sandbox, number, 600).await;
        for path in ["/", "/v1/files", "/health"] {
            let answer = ask(scene, path, &[("Host", &format!("{port}-{sandbox}.{DOMAIN}")), ("X-Belljar-Token", &token)]);
            assert_eq!(status(&answer), 502, "{class}: port {port}: {answer}");
        }
    }
}

/// Reads of an answer until its other end says no more; whether that was its end, and all that came.
fn read_out(mut stream: TcpStream) -> (bool, String) {
    let mut all = Vec::new();
    let ended = stream.read_to_end(&mut all).is_ok();
    let text = String::from_utf8_lossy(&all).into_owned();
    (ended && text.ends_with("0\r\n\r\n"), text)
}

#[test]
fn a_stream_of_events_ends_with_its_token() {
    block_on(async {
        let scene = Scene::open().await;
        for class in CLASSES {
            let sandbox = serving(&scene, class).await;
            let open = |token: &str, path: &str| {
                let mut stream = TcpStream::connect(scene.server.url.trim_start_matches("http://")).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let host = format!("8000-{sandbox}.{DOMAIN}");
                write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nX-Belljar-Token: {token}\r\n\r\n").unwrap();
                stream
            };
            let (brief, long) = (token(&scene, &sandbox, 8000, 1).await, token(&scene, &sandbox, 8000, 600).await);
            for path in ["/events", "/events?chunked"] {
                let mut lasting = open(&long, path);
                let brief = token(&scene, &sandbox, 8000, 1).await;
                let (whole, told) = read_out(open(&brief, path));
                assert!(told.starts_with("HTTP/1.1 200") && told.contains("data: tick"), "{class} {path}: {told}");
                assert!(!whole, "{class} {path}: what is cut does not look whole: {told}");
                let mut piece = [0; 1 << 16];
                for _ in 0..10 {
                    assert!(lasting.read(&mut piece).unwrap() > 0, "{class} {path}: one whose token is good goes on");
                }
            }
            assert_eq!(status(&ask(&scene, "/", &[("Host", &format!("8000-{sandbox}.{DOMAIN}")), ("X-Belljar-Token", &brief)])), 401);
            scene.kill(&sandbox).await;
        }
        scene.close();
    });
}

#[test]
fn a_connection_that_was_taken_over_ends_with_its_token() {
    block_on(async {
        let scene = Scene::open().await;
        for class in CLASSES {
            let sandbox = serving(&scene, class).await;
            let open = |token: &str| {
                let mut stream = TcpStream::connect(scene.server.url.trim_start_matches("http://")).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let host = format!("8000-{sandbox}.{DOMAIN}");
                write!(
                    stream,
                    "GET / HTTP/1.1\r\nHost: {host}\r\nX-Belljar-Token: {token}\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"
                )
                .unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
                stream
            };
            let echo = |stream: &mut TcpStream| -> bool {
                let mut back = [0; 4];
                stream.write_all(b"ping").is_ok() && stream.read_exact(&mut back).is_ok() && back == *b"ping"
            };
            let mut brief = open(&token(&scene, &sandbox, 8000, 2).await);
            let mut long = open(&token(&scene, &sandbox, 8000, 600).await);
            assert!(echo(&mut brief) && echo(&mut long), "{class}: it works");
            while echo(&mut brief) {
                std::thread::sleep(Duration::from_millis(200));
            }
            assert!(echo(&mut long), "{class}: one whose token is good goes on");
            scene.kill(&sandbox).await;
        }
        scene.close();
    });
}

/// A program that says who it is.
fn saying(word: &str) -> String {
    let body = format!("HTTP/1.1 200 OK\\r\\nContent-Length: {}\\r\\nConnection: close\\r\\n\\r\\n{word}", word.len());
    format!(
        "listener = socket.create_server(('127.0.0.1', 8000)); listener.settimeout(None)\nwhile True:\n  c, _ = listener.accept(); c.recv(4096); c.sendall(b'{body}'); c.close()"
    )
}

async fn says(scene: &Scene, sandbox: &SandboxId, word: &str) {
    scene.start(sandbox, &saying(word)).await;
    let ready = "while True:\n  try: socket.create_connection(('127.0.0.1', 8000)); break\n  except OSError: time.sleep(0.05)";
    assert_eq!(scene.python(sandbox, ready).await.code, 0);
}

#[test]
fn whoever_moved_is_reached_where_it_is_now() {
    block_on(async {
        let scene = Scene::open().await;
        for class in CLASSES {
            let moving = scene.create(class, None).await;
            says(&scene, &moving, "the one that moved").await;
            let (host, right) = (format!("8000-{moving}.{DOMAIN}"), token(&scene, &moving, 8000, 600).await);
            let ask_it = || ask(&scene, "/", &[("Host", &host), ("X-Belljar-Token", &right)]);
            assert!(ask_it().ends_with("the one that moved"), "{class}: the control");
            // Others take the places that are free while it stands still.
            scene.client.pause_sandbox(&moving, PauseKind::Memory).await.unwrap();
            assert_ne!(status(&ask_it()), 200, "{class}: nobody answers for it");
            let mut others = Vec::new();
            for _ in 0..3 {
                let other = scene.create(class, None).await;
                says(&scene, &other, "somebody else").await;
                others.push(other);
            }
            assert_ne!(status(&ask_it()), 200, "{class}: nobody answers for it");
            scene.client.resume_sandbox(&moving, None).await.unwrap();
            let answer = ask_it();
            assert!(status(&answer) == 200 && answer.ends_with("the one that moved"), "{class}: {answer}");
            for other in others {
                let (host, theirs) = (format!("8000-{other}.{DOMAIN}"), token(&scene, &other, 8000, 600).await);
                let answer = ask(&scene, "/", &[("Host", &host), ("X-Belljar-Token", &theirs)]);
                assert!(answer.ends_with("somebody else"), "{class}: {answer}");
                scene.kill(&other).await;
            }
            scene.kill(&moving).await;
        }
        scene.close();
    });
}
