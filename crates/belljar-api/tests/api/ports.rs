//! Programs in a sandbox, reached by path and by host name.

use axum::body::Body;
use axum::http::{Method, header};
use belljar_testkit::block_on;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::scene::{Client, DOMAIN, Scene};

/// Answers with what it was asked, so that a test sees what a program sees; upgrades to an echo.
const PROGRAM: &str = r#"
import base64, hashlib, json, socket, struct
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def handle_any(self):
        if self.headers.get("Upgrade") == "websocket":
            return self.websocket()
        length = int(self.headers.get("Content-Length") or 0)
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while (size := int(self.rfile.readline(), 16)):
                body += self.rfile.read(size); self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(length)
        answer = json.dumps({"method": self.command, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "length": len(body)}).encode()
        self.send_response(207)
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("X-Mine", "yes")
        self.end_headers()
        self.wfile.write(answer)
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = handle_any
    def websocket(self):
        accept = base64.b64encode(hashlib.sha1((self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        self.wfile.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        while True:
            head = self.rfile.read(2)
            if len(head) < 2 or head[0] & 15 == 8: break
            size = head[1] & 127
            if size == 126: size = struct.unpack(">H", self.rfile.read(2))[0]
            elif size == 127: size = struct.unpack(">Q", self.rfile.read(8))[0]
            mask = self.rfile.read(4)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(size)))
            frame = bytes([head[0]]) + (bytes([size]) if size < 126 else bytes([126]) + struct.pack(">H", size))
            self.wfile.write(frame + data)
        self.close_connection = True

ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"#;

async fn serving(client: &Client) -> String {
    let sandbox = client.sandbox().await;
    client.post(&format!("{sandbox}/processes"), &json!({"argv": ["python3", "-c", PROGRAM]})).await.ok();
    client.run(&sandbox, "until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null || bash -c 'exec 3<>/dev/tcp/127.0.0.1/8000' 2>/dev/null; do sleep 0.05; done").await;
    sandbox
}

fn id(sandbox: &str) -> &str {
    sandbox.rsplit('/').next().unwrap()
}

#[test]
fn a_program_is_reached_by_path() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = serving(ours).await;
        let ports = ours.get(&format!("{sandbox}/ports")).await.ok();
        assert!(ports["ports"].as_array().unwrap().iter().any(|port| port["port"] == 8000), "{ports}");

        let answer = ours.get(&format!("{sandbox}/ports/8000/proxy/a%2Fb/c?q=1&r")).await;
        assert_eq!((answer.status.as_u16(), answer.headers["x-mine"].to_str().unwrap()), (207, "yes"));
        let seen = answer.json();
        assert_eq!((&seen["path"], &seen["method"]), (&json!("/a%2Fb/c?q=1&r"), &json!("GET")));
        assert_eq!(seen["headers"]["x-forwarded-prefix"], format!("{sandbox}/ports/8000/proxy"));
        assert_eq!(seen["headers"]["x-forwarded-for"], "127.0.0.1");
        assert_eq!(
            (&seen["headers"]["authorization"], &seen["headers"]["x-api-key"]),
            (&Value::Null, &Value::Null),
            "no key of ours goes in"
        );

        let request = ours.request(Method::POST, &format!("{sandbox}/ports/8000/proxy/up"));
        let pieces = (0..100).map(|_| Ok::<_, std::io::Error>(bytes::Bytes::from(vec![b'x'; 30_000])));
        let answer = ours.send(request.body(Body::from_stream(futures_util::stream::iter(pieces))).unwrap()).await;
        assert_eq!(answer.json()["length"], 3_000_000);

        let bare = ours.get(&format!("{sandbox}/ports/8000/proxy?q=1")).await.json();
        assert_eq!(bare["path"], "/?q=1");
        let closed = ours.get(&format!("{sandbox}/ports/8001/proxy/")).await.problem(502);
        assert!(closed["code"] == "port_closed" && closed["detail"].as_str().unwrap().contains("8001"), "{closed}");
        assert_eq!(ours.get(&format!("{sandbox}/ports/70000/proxy/")).await.problem(400)["field"], "port");
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn a_program_is_reached_by_host_name_with_a_key_or_a_token() {
    block_on(async {
        let scene = Scene::get().await;
        let (ours, stranger) = (&scene.ours, scene.ours.stranger());
        let sandbox = serving(ours).await;
        let host = format!("8000-{}.{DOMAIN}", id(&sandbox));
        let ask = async |client: &Client, path: &str, name: &str, value: &str| {
            let mut request = client.request(Method::GET, path).body(Body::empty()).unwrap();
            request.headers_mut().insert(header::HOST, host.parse().unwrap());
            if !name.is_empty() {
                request.headers_mut().insert(header::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
            }
            client.send(request).await
        };
        assert_eq!(ask(ours, "/x", "", "").await.json()["path"], "/x");
        assert_eq!(ask(&stranger, "/x", "", "").await.problem(401)["code"], "unauthorized");
        assert_eq!(ask(&scene.theirs, "/x", "", "").await.problem(404)["code"], "sandbox_not_found");

        let made = ours.post(&format!("{sandbox}/ports/8000/token"), &json!({"expires_in_seconds": 60})).await.ok();
        let token = made["token"].as_str().unwrap();
        assert_eq!(made["host"], host);
        let seen = ask(&stranger, "/x", "X-Belljar-Token", token).await.json();
        assert_eq!((&seen["path"], &seen["headers"]["x-belljar-token"]), (&json!("/x"), &Value::Null));
        let moved = ask(&stranger, &format!("/x?a=1&belljar_token={token}"), "", "").await;
        assert_eq!((moved.status.as_u16(), moved.headers[header::LOCATION].to_str().unwrap()), (303, "/x?a=1"));
        let cookie = moved.headers[header::SET_COOKIE].to_str().unwrap();
        assert!(cookie.contains("HttpOnly"), "{cookie}");
        let pair = format!("mine=1; {}", cookie.split(';').next().unwrap());
        let seen = ask(&stranger, "/x?a=1", "Cookie", &pair).await.json();
        assert_eq!((&seen["path"], &seen["headers"]["cookie"]), (&json!("/x?a=1"), &json!("mine=1")), "the token stays outside");

        let other = ours.post(&format!("{sandbox}/ports/8001/token"), &json!({})).await.ok();
        assert_eq!(ask(&stranger, "/x", "X-Belljar-Token", other["token"].as_str().unwrap()).await.problem(401)["code"], "unauthorized");
        ours.delete(&sandbox).await.ok();
        assert_eq!(ask(&stranger, "/x", "X-Belljar-Token", token).await.problem(409)["code"], "sandbox_ended");
    });
}

#[test]
fn a_websocket_goes_through() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = serving(ours).await;
        let mut request = format!("ws://{}{sandbox}/ports/8000/proxy/socket", ours.address).into_client_request().unwrap();
        request.headers_mut().insert("x-api-key", ours.key.as_deref().unwrap().parse().unwrap());
        let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        for size in [5, 1000, 60_000] {
            let text = "y".repeat(size);
            socket.send(Message::text(text.clone())).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap().into_text().unwrap(), text);
        }
        socket.close(None).await.unwrap();
        ours.delete(&sandbox).await.ok();
    });
}
