//! Who may reach what: keys, tokens, signed links, ports, and sandboxes of somebody else.

use serde_json::{Value, json};

use crate::wire::{Wire, frame, shell};

#[test]
fn nothing_is_told_to_whoever_has_no_key_or_a_wrong_one() {
    let wire = Wire::open();
    let wrong = format!("e2b_{}", "0".repeat(40));
    for headers in [&[] as &[(&str, &str)], &[("X-API-Key", wrong.as_str())], &[("X-API-Key", "nonsense")]] {
        for path in ["/v2/sandboxes", "/sandboxes/sabcdefghijkmnpqrstu", "/templates"] {
            let answer = wire.ask("GET", path, headers, b"");
            assert_eq!((answer.status, answer.json()["code"].as_u64()), (401, Some(401)), "{path}");
        }
    }
    assert_eq!(wire.ask("GET", "/health", &[], b"").status, 204);
}

#[test]
fn a_daemon_is_open_to_its_own_token_only() {
    let wire = Wire::open();
    let (guest, other) = (wire.sandbox(&json!({})), wire.sandbox(&json!({})));
    let list = |token: Option<&str>| {
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(token.map(|token| ("X-Access-Token", token)));
        guest.daemon("POST", "/process.Process/List", &headers, b"{}").status
    };
    assert_eq!(list(Some(&guest.token)), 200);
    for wrong in [None, Some(""), Some(other.token.as_str()), Some(wire.key.as_str())] {
        assert_eq!(list(wrong), 401, "{wrong:?}");
    }
    assert_eq!(guest.daemon("GET", "/health", &[], b"").status, 204, "health is for everybody");
    let file = |headers: &[(&str, &str)]| guest.daemon("GET", "/files?path=/etc/hostname", headers, b"");
    assert_eq!(file(&[]).json()["message"], "missing signature query parameter");
    assert_eq!(file(&[("X-Access-Token", "x")]).json()["message"], "access token present in header but does not match");
    for internal in ["/init", "/freeze", "/upgrade"] {
        assert_eq!(guest.daemon("POST", internal, &[("X-Access-Token", &guest.token)], b"{}").status, 404);
    }
}

#[test]
fn a_key_that_may_only_look_is_told_no_token() {
    let wire = Wire::open();
    let guest = wire.sandbox(&json!({ "network": { "allowPublicTraffic": false } }));
    let volume = wire.control("POST", "/volumes", &json!({ "name": "looked-at" })).json()["volumeID"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {}", wire.key);
    let asked = json!({ "project": "default", "scopes": ["read"] }).to_string();
    let made = wire.ask("POST", "/v1/keys", &[("Authorization", &bearer), ("Content-Type", "application/json")], asked.as_bytes());
    let reader = made.json()["secret"].as_str().unwrap().replace("bj_", "e2b_");
    let look = |key: &str, path: &str| wire.ask("GET", path, &[("X-API-Key", key)], b"");
    let (one, volume) = (format!("/sandboxes/{}", guest.id), format!("/volumes/{volume}"));
    for path in ["/v2/sandboxes", "/sandboxes", one.as_str()] {
        for (key, told) in [(&wire.key, true), (&reader, false)] {
            let answer = look(key, path);
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(answer.status == 200 && text.contains(&guest.id), "{path}: {text}");
            assert_eq!((text.contains("envdAccessToken"), text.contains("trafficAccessToken")), (told, told), "{path}");
        }
    }
    assert_eq!((look(&wire.key, &volume).status, look(&reader, &volume).status), (200, 403));
    assert_eq!(look(&reader, "/volumes").status, 200, "a list has no tokens");
    assert_eq!(wire.control("DELETE", &volume, &Value::Null).status, 204);
}

#[test]
fn an_open_daemon_is_only_there_when_it_was_asked_for() {
    let wire = Wire::open();
    let guest = wire.sandbox(&json!({ "secure": false }));
    assert_eq!(guest.token, "");
    assert_eq!(guest.daemon("POST", "/process.Process/List", &[("Content-Type", "application/json")], b"{}").status, 200);
    let detail = wire.control("GET", &format!("/sandboxes/{}", guest.id), &Value::Null).json();
    assert_eq!(detail["metadata"], json!({}), "what the server notes is not the client's metadata");
}

#[test]
fn a_sandbox_that_is_not_there_and_a_port_that_is_closed_are_told_apart() {
    let wire = Wire::open();
    let guest = wire.sandbox(&json!({}));
    let ask = |id: &str, port: &str| wire.ask("GET", "/", &[("E2b-Sandbox-Id", id), ("E2b-Sandbox-Port", port)], b"");
    let closed = ask(&guest.id, "8123");
    assert_eq!(closed.status, 502);
    let expected = json!({ "sandboxId": guest.id, "message": "The sandbox is running but port is not open", "port": 8123, "code": 502 });
    assert_eq!(closed.json(), expected);
    for nobody in ["sabcdefghijkmnpqrstu", "x", "../../etc"] {
        let answer = ask(nobody, "49983");
        assert_eq!((answer.status, answer.json()["message"].as_str()), (502, Some("The sandbox was not found")), "{nobody}");
    }
    assert_eq!(ask(&guest.id, "many").status, 400);
    assert_eq!(wire.ask("GET", "/", &[("E2b-Sandbox-Id", &guest.id)], b"").status, 400);
}

#[test]
fn a_private_port_wants_its_token_and_a_program_never_sees_one() {
    let wire = Wire::open();
    let guest = wire.sandbox(&json!({ "network": { "allowPublicTraffic": false } }));
    let made = wire.control("POST", &format!("/sandboxes/{}/connect", guest.id), &json!({ "timeout": 60 })).json();
    let token = made["trafficAccessToken"].as_str().unwrap().to_owned();
    let serve = "python3 - <<'E' & \nimport http.server\nclass H(http.server.BaseHTTPRequestHandler):\n  def do_GET(self):\n    self.send_response(200); self.end_headers(); self.wfile.write(str(self.headers).encode())\nhttp.server.HTTPServer(('127.0.0.1', 8000), H).serve_forever()\nE\nuntil curl -s -o /dev/null localhost:8000; do sleep 0.05; done";
    let started = format!("({serve}) >/dev/null 2>&1");
    assert_eq!(guest.stream("/process.Process/Start", &frame(&shell(&started))).status, 200);
    let ask = |more: &[(&str, &str)]| {
        let mut headers =
            vec![("E2b-Sandbox-Id", guest.id.as_str()), ("E2b-Sandbox-Port", "8000"), ("X-Access-Token", guest.token.as_str())];
        headers.extend_from_slice(more);
        wire.ask("GET", "/", &headers, b"")
    };
    assert_eq!(ask(&[]).status, 403);
    assert_eq!(ask(&[("E2b-Traffic-Access-Token", "wrong")]).status, 403);
    assert_eq!(ask(&[("E2b-Traffic-Access-Token", &guest.token)]).status, 403, "the daemon's token is another");
    let seen = ask(&[("E2b-Traffic-Access-Token", &token)]);
    assert_eq!(seen.status, 200);
    let seen = String::from_utf8_lossy(&seen.body).into_owned();
    assert!(!seen.contains(&token) && !seen.contains(&guest.token), "{seen}");
}

#[test]
fn what_is_not_done_is_never_said_to_be() {
    let wire = Wire::open();
    for path in ["fork", "snapshots"] {
        let nobody = wire.control("POST", &format!("/sandboxes/sabcdefghijkmnpqrstu/{path}"), &json!({}));
        assert_eq!(nobody.status, 404, "{path}");
    }
    let bodies = [json!({ "network": { "egressProxy": { "address": "proxy.example:1080" } } }), json!({ "timeout": 0 })];
    for body in bodies {
        let mut whole = json!({ "templateID": "base" });
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let answer = wire.control("POST", "/v2/sandboxes", &whole);
        assert!(matches!(answer.status, 400 | 501), "{body}: {}", answer.status);
    }
}
