//! Programs that listen in a sandbox, reached from here.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use crate::scene::{Sandbox, Scene, Started};

const WEB: &str = "cd /tmp && echo hello > greeting && exec python3 -u -m http.server 8000 --bind 127.0.0.1";
/// Changes to a protocol of its own, in which it gives back what it gets.
const ECHO: &str = r#"exec python3 -u -c '
import socket
listener = socket.create_server(("127.0.0.1", 8001))
print("listening")
while True:
    connection, _ = listener.accept()
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(4096)
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
    while data := connection.recv(4096):
        connection.sendall(data)
    connection.close()
'"#;

/// A forwarding that is ended with the test; gives its address too.
fn forward(scene: &Scene, sandbox: &Sandbox<'_>, port: &str) -> (Started, String) {
    let arguments = ["port", "--json", &sandbox.id, port, "--local", "0"];
    let mut child = scene.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let output = Some(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut started = Started { child, output };
    let told: serde_json::Value = serde_json::from_str(&started.line()).unwrap();
    let address = told["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
    (started, address)
}

fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_program_is_listed_and_reached() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let mut program = sandbox.start(&[], WEB);
    assert!(program.line().starts_with("Serving HTTP"));
    assert!(scene.run(["port", &sandbox.id]).ok().stdout_text().contains("8000"));
    assert_eq!(scene.run(["port", "--json", &sandbox.id]).ok().json()[0]["port"], 8000);
    let (_forwarding, address) = forward(&scene, &sandbox, "8000");
    let get = |path: &str| ask(&address, &format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"));
    let greeting = get("/greeting");
    assert!(greeting.starts_with("HTTP/1.1 200") && greeting.ends_with("hello\n"), "{greeting}");
    assert!(get("/nowhere").starts_with("HTTP/1.1 404"));
    assert!(get("/").contains("greeting"), "{}", get("/"));
}

#[test]
fn a_connection_may_change_its_protocol() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let mut program = sandbox.start(&[], ECHO);
    assert_eq!(program.line(), "listening");
    let (_forwarding, address) = forward(&scene, &sandbox, "8001");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(b"GET /chat HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    for word in ["first", "second"] {
        stream.write_all(word.as_bytes()).unwrap();
        let mut echo = vec![0; word.len()];
        stream.read_exact(&mut echo).unwrap();
        assert_eq!(echo, word.as_bytes());
    }
}
