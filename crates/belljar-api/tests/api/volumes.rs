//! Volumes over HTTP: made, filled without a sandbox, mounted, copied, removed; and nothing of them is there for another project.

use axum::body::Body;
use axum::http::{Method, header};
use belljar_testkit::block_on;
use serde_json::json;

use crate::scene::{Answer, Client, Scene};

async fn put(client: &Client, path: &str, content: &'static str) -> Answer {
    client.send(client.request(Method::PUT, path).body(Body::from(content)).unwrap()).await
}

#[test]
fn a_volume_is_made_filled_mounted_copied_and_removed() {
    block_on(async {
        let scene = Scene::get().await;
        let ours = &scene.ours;
        let made = ours.post("/v1/volumes", &json!({"name": "data", "size_bytes": 16 << 20})).await.ok();
        assert_eq!((&made["name"], &made["size_bytes"], &made["read_only"]), (&json!("data"), &json!(16 << 20), &json!(false)));
        assert_eq!(ours.post("/v1/volumes", &json!({"name": "data"})).await.problem(409)["code"], "exists");
        assert_eq!(ours.post("/v1/volumes", &json!({"name": "a b"})).await.problem(400)["field"], "name");
        assert_eq!(ours.post("/v1/volumes", &json!({"name": "tiny", "size_bytes": 1})).await.problem(400)["field"], "size_bytes");

        let file = "/v1/volumes/data/files?path=/a/b.txt";
        assert_eq!(put(ours, file, "hello").await.problem(404)["code"], "file_not_found");
        assert_eq!(put(ours, &format!("{file}&parents=true&mode=0600"), "hello").await.ok()["mode"], "0600");
        assert_eq!(ours.get(file).await.body, "hello");
        let piece = ours.request(Method::GET, file).header(header::RANGE, "bytes=1-3").body(Body::empty()).unwrap();
        let piece = ours.send(piece).await;
        assert_eq!((piece.status.as_u16(), &piece.body[..]), (206, &b"ell"[..]));
        assert_eq!(piece.headers[header::CONTENT_RANGE], "bytes 1-3/5");
        let once = ours.request(Method::PUT, file).header(header::IF_NONE_MATCH, "*").body(Body::from("x")).unwrap();
        assert_eq!(ours.send(once).await.problem(409)["code"], "exists");
        assert_eq!(ours.get("/v1/volumes/data/files?path=/../x").await.problem(400)["field"], "path");
        assert_eq!(ours.get("/v1/volumes/data/files?path=/a").await.problem(409)["code"], "wrong_kind");
        assert_eq!(ours.get("/v1/volumes/data/files/stat?path=/a/b.txt").await.ok()["size"], 5);
        let moved = json!({"from": "/a/b.txt", "to": "/c.txt"});
        assert_eq!(ours.post("/v1/volumes/data/files/move", &moved).await.ok()["path"], "/c.txt");
        ours.post("/v1/volumes/data/files/mkdir", &json!({"path": "/d/e"})).await.ok();
        let changed = json!({"path": "/c.txt", "mode": "0644", "uid": 7});
        assert_eq!(ours.ask(Method::PATCH, "/v1/volumes/data/files", Some(&changed)).await.ok()["uid"], 7);
        let listed = ours.get("/v1/volumes/data/files/list?depth=2").await.ok();
        let paths: Vec<&str> = listed["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["/a", "/c.txt", "/d", "/d/e"]);
        ours.delete("/v1/volumes/data/files?path=/d").await.ok();

        let mount = json!([{"volume": "data", "path": "/mnt/data"}]);
        let sandbox = ours.post("/v1/sandboxes", &json!({"isolation": "container", "volumes": mount})).await.ok();
        assert_eq!(sandbox["volumes"], json!([{"volume": "data", "path": "/mnt/data", "mode": "read-write"}]));
        let status = ours.get("/v1/volumes/data").await.ok();
        assert_eq!(status["mounted_by"], json!([{"sandbox": sandbox["id"], "mode": "read-write"}]));
        let taken = ours.post("/v1/sandboxes", &json!({"isolation": "container", "volumes": mount})).await;
        let taken = taken.problem(409);
        assert_eq!(taken["code"], "volume_in_use");
        assert!(taken["detail"].as_str().unwrap().contains(sandbox["id"].as_str().unwrap()), "{taken}");
        assert_eq!(ours.delete("/v1/volumes/data").await.problem(409)["code"], "volume_in_use");
        let nowhere = json!({"volumes": [{"volume": "data", "path": "/proc"}]});
        assert_eq!(ours.post("/v1/sandboxes", &nowhere).await.problem(400)["field"], "volumes.path");
        let inside = format!("/v1/sandboxes/{}/files?path=/mnt/data/c.txt", sandbox["id"].as_str().unwrap());
        assert_eq!(ours.get(&inside).await.body, "hello");

        let copy = ours.post("/v1/volumes/data/clones", &json!({"name": "kept", "read_only": true})).await.ok();
        assert_eq!((&copy["read_only"], &copy["origin"]), (&json!(true), &made["id"]));
        assert_eq!(put(ours, "/v1/volumes/kept/files?path=/x", "x").await.problem(409)["code"], "volume_read_only");
        assert_eq!(ours.get("/v1/volumes/kept/files?path=/c.txt").await.body, "hello");
        let page = ours.get("/v1/volumes?limit=1").await.ok();
        assert_eq!((page["volumes"].as_array().unwrap().len(), &page["next_cursor"]), (1, &json!("data")));
        ours.delete(&format!("/v1/sandboxes/{}", sandbox["id"].as_str().unwrap())).await.ok();
        for volume in ["data", "kept"] {
            ours.delete(&format!("/v1/volumes/{volume}")).await.ok();
            assert_eq!(ours.get(&format!("/v1/volumes/{volume}")).await.problem(404)["code"], "volume_not_found");
        }
    });
}

#[test]
fn a_strangers_volumes_are_not_there() {
    block_on(async {
        let scene = Scene::get().await;
        let made = scene.theirs.post("/v1/volumes", &json!({"name": "private"})).await.ok();
        put(&scene.theirs, "/v1/volumes/private/files?path=/secret", "theirs").await.ok();
        for which in ["private", made["id"].as_str().unwrap()] {
            let of = |rest: &str| format!("/v1/volumes/{which}{rest}");
            let ours = &scene.ours;
            for path in [of(""), of("/files?path=/secret"), of("/files/stat?path=/secret"), of("/files/list")] {
                assert_eq!(ours.get(&path).await.problem(404)["code"], "volume_not_found", "{path}");
            }
            assert_eq!(put(ours, &of("/files?path=/x"), "x").await.problem(404)["code"], "volume_not_found");
            assert_eq!(ours.delete(&of("")).await.problem(404)["code"], "volume_not_found");
            assert_eq!(ours.delete(&of("/files?path=/secret")).await.problem(404)["code"], "volume_not_found");
            assert_eq!(ours.post(&of("/clones"), &json!({"name": "mine"})).await.problem(404)["code"], "volume_not_found");
            let mount = json!({"isolation": "container", "volumes": [{"volume": which, "path": "/d"}]});
            assert_eq!(ours.post("/v1/sandboxes", &mount).await.problem(404)["code"], "volume_not_found");
        }
        assert_eq!(scene.ours.get("/v1/volumes").await.ok()["volumes"].to_string().find("private"), None);
        assert_eq!(scene.theirs.get("/v1/volumes/private/files?path=/secret").await.body, "theirs");
        scene.theirs.delete("/v1/volumes/private").await.ok();
    });
}
