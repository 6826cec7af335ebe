//! Files: content in pieces, trees, watches.

use axum::body::{Body, Bytes};
use axum::http::{Method, header};
use belljar_testkit::{block_on, pattern, sha256};
use serde_json::{Value, json};

use crate::scene::{Answer, Client, Lines, Scene};

pub(crate) async fn put(client: &Client, path: &str, body: impl Into<Body>) -> Answer {
    client.send(client.request(Method::PUT, path).body(body.into()).unwrap()).await
}

async fn range(client: &Client, path: &str, range: &str) -> Answer {
    client.send(client.request(Method::GET, path).header(header::RANGE, range).body(Body::empty()).unwrap()).await
}

#[test]
fn a_file_is_written_and_read_whole_and_in_pieces() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let file = format!("{sandbox}/files?path=/tmp/deep/er/file.bin");
        let content = pattern(5_000_000);
        let pieces: Vec<Result<Bytes, std::io::Error>> = content.chunks(100_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let view = put(ours, &format!("{file}&parents=true&mode=0600"), Body::from_stream(futures_util::stream::iter(pieces))).await.ok();
        assert_eq!((&view["size"], &view["mode"], &view["kind"]), (&json!(5_000_000), &json!("0600"), &json!("file")));
        assert_eq!(ours.run(&sandbox, "sha256sum < /tmp/deep/er/file.bin").await["stdout"], format!("{}  -\n", sha256(&content)));

        let whole = ours.get(&file).await;
        assert_eq!((whole.headers[header::CONTENT_LENGTH].to_str().unwrap(), whole.body == content), ("5000000", true));
        for (asked, from, to) in [("bytes=0-9", 0, 10), ("bytes=4999990-", 4_999_990, 5_000_000), ("bytes=-5", 4_999_995, 5_000_000)] {
            let piece = range(ours, &file, asked).await;
            assert_eq!((piece.status.as_u16(), &piece.body[..]), (206, &content[from..to]), "{asked}");
            assert_eq!(piece.headers[header::CONTENT_RANGE], format!("bytes {from}-{}/5000000", to - 1));
        }
        let beyond = range(ours, &file, "bytes=5000000-").await;
        assert_eq!(
            (beyond.problem(416)["code"].clone(), beyond.headers[header::CONTENT_RANGE].to_str().unwrap()),
            (json!("range_not_satisfiable"), "bytes */5000000")
        );
        let head = ours.ask(Method::HEAD, &file, None).await;
        assert_eq!((head.headers[header::CONTENT_LENGTH].to_str().unwrap(), head.body.len()), ("5000000", 0));

        put(ours, &format!("{file}&offset=2"), "XY").await.ok();
        assert_eq!(range(ours, &file, "bytes=0-5").await.body[..], [&content[..2], b"XY", &content[4..6]].concat());
        let exclusive = ours.request(Method::PUT, &file).header(header::IF_NONE_MATCH, "*").body(Body::from("new")).unwrap();
        assert_eq!(ours.send(exclusive).await.problem(409)["code"], "guest_refused");
        assert!(
            ours.get(&format!("{sandbox}/files?path=/proc/version")).await.body.starts_with(b"Linux"),
            "files without a size are read too"
        );
        ours.delete(&file).await.ok();
        assert_eq!(ours.get(&file).await.problem(404)["code"], "file_not_found");
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn trees_are_made_listed_moved_and_changed() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let files = format!("{sandbox}/files");
        assert_eq!(ours.post(&format!("{files}/mkdir"), &json!({"path": "/tmp/t/a/b"})).await.ok(), json!({"created": true}));
        assert_eq!(ours.post(&format!("{files}/mkdir"), &json!({"path": "/tmp/t/a/b"})).await.ok(), json!({"created": false}));
        put(ours, &format!("{files}?path=/tmp/t/a/f.txt"), "needle in hay\n").await.ok();
        let moved = ours.post(&format!("{files}/move"), &json!({"from": "/tmp/t/a/f.txt", "to": "/tmp/t/a/b/g.txt"})).await.ok();
        assert_eq!(moved["path"], "/tmp/t/a/b/g.txt");
        let listed = ours.get(&format!("{files}/list?path=/tmp/t&depth=9")).await.ok();
        let paths: Vec<&str> = listed["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect();
        assert!(paths.len() == 3 && paths.iter().any(|path| path.ends_with("a/b/g.txt")), "{paths:?}");
        let changed = ours.ask(Method::PATCH, &files, Some(&json!({"path": "/tmp/t/a/b/g.txt", "mode": "0640"}))).await.ok();
        assert_eq!(changed["mode"], "0640");
        assert_eq!(ours.get(&format!("{files}/stat?path=/tmp/t/a/b/g.txt")).await.ok(), changed);

        let found = ours.get(&format!("{files}/search?path=/tmp/t&content=needle")).await.lines();
        assert_eq!(
            (&found[0]["line"], &found[0]["text"], &found[1]),
            (&json!(1), &json!("needle in hay"), &json!({"type": "done", "hits": 1}))
        );
        let found = ours.post(&format!("{files}/search"), &json!({"path": "/tmp/t", "name": "g.*"})).await.lines();
        assert_eq!(found.len(), 2, "{found:?}");

        // `/tmp/\xff` is no text.
        put(ours, &format!("{files}?path_base64=L3RtcC//"), "x").await.ok();
        let odd = ours.get(&format!("{files}/stat?path_base64=L3RtcC//")).await.ok();
        assert_eq!(odd["path_base64"], "L3RtcC//");

        let attribute = format!("{files}/xattr?path=/tmp/t/a/b/g.txt&name=user.note");
        assert_eq!(ours.get(&attribute).await.problem(404)["code"], "attribute_not_found");
        ours.ask(Method::PUT, &attribute, Some(&json!({"value_base64": "aGVsbG8="}))).await.ok();
        assert_eq!(ours.get(&attribute).await.ok()["value_base64"], "aGVsbG8=");
        ours.delete(&attribute).await.ok();
        assert_eq!(ours.get(&attribute).await.status.as_u16(), 404);

        for (query, field) in [
            ("", "path"),
            ("?path=", "path"),
            ("?path=a&path_base64=YQ==", "path_base64"),
            ("?path=a&user=a%20b", "user"),
            ("?pth=a", "pth"),
        ] {
            assert_eq!(ours.get(&format!("{files}/stat{query}")).await.problem(400)["field"], field, "{query}");
        }
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn a_watch_tells_what_happens_after_it_is_in_place() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        ours.post(&format!("{sandbox}/files/mkdir"), &json!({"path": "/tmp/watched"})).await.ok();
        let request = ours.request(Method::GET, &format!("{sandbox}/files/watch?path=/tmp/watched")).body(Body::empty()).unwrap();
        let mut events = Lines::of(ours.open(request).await);
        assert_eq!(events.json().await, json!({"type": "watching"}));
        ours.run(&sandbox, "echo x > /tmp/watched/f; rm /tmp/watched/f").await;
        let mut kinds: Vec<Value> = Vec::new();
        while kinds.last() != Some(&json!("removed")) {
            let event = events.json().await;
            if event["name"] == "f" {
                kinds.push(event["kind"].clone());
            }
        }
        assert_eq!(kinds.first(), Some(&json!("created")));
        ours.delete(&sandbox).await.ok();
    });
}
