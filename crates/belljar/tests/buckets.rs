//! A bucket in sandboxes of both classes: through a real server, a real service that speaks S3 and checks every signature, and the command line.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its scene has nothing to say")]

use std::process::Command;
use std::time::Duration;

use belljar_testkit::s3::{ACCESS_KEY, BUCKET, REGION, S3Server, SECRET_KEY};
use belljar_testkit::{ServerProcess, block_on};

const CLASSES: [&str; 2] = ["container", "gvisor"];

struct Scene {
    s3: S3Server,
    server: ServerProcess,
    key: String,
    _directory: tempfile::TempDir,
}

impl Scene {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let s3 = S3Server::start(&directory.path().join("bucket"), 100).await.unwrap();
        let key_file = directory.path().join("key");
        std::fs::write(&key_file, format!("access_key_id = \"{ACCESS_KEY}\"\nsecret_access_key = \"{SECRET_KEY}\"\n")).unwrap();
        std::fs::set_permissions(&key_file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let place = format!(
            "endpoint = \"{}\"\nregion = \"{REGION}\"\nbucket = \"{BUCKET}\"\nkey_file = \"{}\"\nprojects = [\"default\"]\n",
            s3.endpoint(),
            key_file.display()
        );
        let settings = format!(
            "[sandboxes]\nallow_shared_kernel = true\n[log]\nfilter = \"warn\"\n\
             [buckets.work]\nprefix = \"agents\"\n{place}[buckets.archive]\nprefix = \"agents\"\nread_only = true\n{place}"
        );
        let server = ServerProcess::start(&settings).await;
        let key = std::fs::read_to_string(server.scope.data_dir.join("first-key")).unwrap().trim().to_owned();
        Self { s3, server, key, _directory: directory }
    }

    /// What the program says, with its exit code.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_belljar"));
        let done = command.args(arguments).env("BELLJAR_URL", &self.server.url).env("BELLJAR_API_KEY", &self.key).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    }

    #[track_caller]
    fn says(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.run(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {err}");
        out.trim().to_owned()
    }

    #[track_caller]
    fn inside(&self, sandbox: &str, script: &str) -> String {
        self.says(&["exec", sandbox, "--", "sh", "-euc", script])
    }

    /// Those that serve something of this server.
    fn brokers(&self) -> Vec<u32> {
        let mine = format!("serve-bucket {}", self.server.scope.data_dir.join("pool/volumes").display());
        let found = Command::new("pgrep").args(["-f", &mine]).output().unwrap().stdout;
        String::from_utf8(found).unwrap().lines().map(|line| line.parse().unwrap()).collect()
    }

    fn is_mounted(&self) -> bool {
        let place = self.server.scope.data_dir.join("pool/volumes");
        std::fs::read_to_string("/proc/self/mounts").unwrap().contains(&*place.to_string_lossy())
    }
}

#[test]
fn a_bucket_is_a_directory_of_sandboxes_and_its_keys_stay_outside() {
    block_on(async {
        let mut scene = Scene::open().await;
        scene.says(&["volume", "create", "work", "--bucket", "work"]);
        scene.says(&["volume", "create", "archive", "--bucket", "archive"]);
        for class in CLASSES {
            let sandbox =
                scene.says(&["create", "--isolation", class, "--volume", "work:/mnt/work:shared", "--volume", "archive:/mnt/old:ro"]);
            scene.inside(&sandbox, &format!("mkdir -p /mnt/work/{class} && echo hello from {class} > /mnt/work/{class}/greeting"));
            let key = format!("agents/{class}/greeting");
            assert!(scene.s3.keys().contains(&key), "{:?}", scene.s3.keys());
            assert_eq!(scene.inside(&sandbox, &format!("cat /mnt/old/{class}/greeting")), format!("hello from {class}"));
            let large = "head -c 20000000 /dev/urandom > /tmp/large && cp /tmp/large /mnt/work/large && cmp /tmp/large /mnt/work/large && rm /mnt/work/large";
            scene.inside(&sandbox, large);
            for shell in ["sh", "sudo sh"] {
                let (code, _, words) = scene.run(&["exec", &sandbox, "--", "sh", "-c", &format!("{shell} -c 'echo x > /mnt/old/new'")]);
                assert!(code != Some(0), "{words}");
                assert!(words.contains("Read-only file system") || words.contains("Permission denied"), "{words}");
            }
            assert!(!scene.s3.keys().contains(&"agents/new".to_owned()));
            // Root of the sandbox may look everywhere; what is looked for is in none of its processes, files and mounts, and would be found.
            let (begin, end) = SECRET_KEY.split_at(SECRET_KEY.len() / 2);
            let places = "/proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/mounts /proc/[0-9]*/mountinfo /etc /run /tmp /mnt /home /root /var /.belljar";
            let search = format!("sudo sh -c \"printf '%s%s' '{begin}' '{end}' | grep -rslF -f - {places} || true\"");
            scene.inside(&sandbox, &format!("printf '%s%s' '{begin}' '{end}' > /tmp/planted"));
            assert_eq!(scene.inside(&sandbox, &search), "/tmp/planted");
            scene.inside(&sandbox, "rm /tmp/planted");
            assert_eq!(scene.inside(&sandbox, &search), "");

            // The server dies; whoever serves the bucket does not.
            scene.server.kill();
            scene.server.restart().await;
            assert_eq!(scene.inside(&sandbox, &format!("cat /mnt/work/{class}/greeting")), format!("hello from {class}"));
            scene.says(&["pause", &sandbox]);
            scene.says(&["resume", &sandbox]);
            scene.inside(&sandbox, &format!("echo again >> /mnt/work/{class}/greeting"));
            assert_eq!(scene.says(&["volume", "cat", &format!("work:/{class}/greeting")]), format!("hello from {class}\nagain"));

            // Whoever serves it dies: an error inside, never another directory; the next who needs it has another.
            let killed = scene.brokers();
            assert_eq!(killed.len(), 2, "one for each bucket");
            for broker in &killed {
                assert!(Command::new("kill").args(["-9", &broker.to_string()]).status().unwrap().success());
            }
            let (code, _, words) = scene.run(&["exec", &sandbox, "--", "sh", "-c", "echo lost > /mnt/work/lost"]);
            assert!(code != Some(0) && words.contains("not connected"), "{words}");
            scene.says(&["kill", &sandbox]);
            scene.server.kill();
            scene.server.restart().await;
            let again = scene.says(&["create", "--isolation", class, "--volume", "work:/mnt/work:shared"]);
            assert_eq!(
                scene.inside(&again, &format!("cat /mnt/work/{class}/greeting; ls /mnt/work")),
                format!("hello from {class}\nagain\n{}", seen(class))
            );
            scene.says(&["kill", &again]);
            scene.says(&["volume", "cat", &format!("archive:/{class}/greeting")]);
        }
        for broker in scene.brokers() {
            let shown = ["cmdline", "environ"].map(|name| std::fs::read(format!("/proc/{broker}/{name}")).unwrap_or_default()).concat();
            assert!(!String::from_utf8_lossy(&shown).contains(SECRET_KEY));
        }
        assert!(scene.s3.counts().0 > 0, "what is served was signed as it has to be");

        let (_, _, words) = scene.run(&["volume", "clone", "work", "copy"]);
        assert!(words.contains("no bucket"), "{words}");
        let (_, _, words) = scene.run(&["volume", "create", "other", "--bucket", "nobody"]);
        assert!(words.contains("a bucket that the operator set up for this project"), "{words}");
        for name in ["work", "archive"] {
            scene.says(&["volume", "rm", name]);
        }
        let mut left = scene.brokers();
        for _ in 0..100 {
            if left.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            left = scene.brokers();
        }
        assert!(left.is_empty(), "{left:?}");
        assert!(!scene.is_mounted(), "nothing is left mounted");
        assert!(!scene.s3.keys().is_empty(), "removing the volume does not touch the bucket");
    });
}

/// What is in the bucket after a class had its turn.
fn seen(class: &str) -> &'static str {
    if class == "container" { "container" } else { "container\ngvisor" }
}
