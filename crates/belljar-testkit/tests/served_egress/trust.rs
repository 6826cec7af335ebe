//! Whoever reads TLS is trusted by the programs inside, each of which has its own idea of where to look.

use std::path::{Path, PathBuf};
use std::process::Command;

use belljar_testkit::block_on;
use serde_json::json;

use crate::scene::{CLASSES, Scene, site};

const ASK: &str = r#"
public class Ask {
    public static void main(String[] words) throws Exception {
        System.out.println(new String(new java.net.URL(words[0]).openStream().readAllBytes()));
    }
}
"#;

/// What each is told to do. All of them say what the site says, and where they end in failure, why.
const PROGRAMS: [(&str, &str); 5] = [
    ("curl", "curl --silent --show-error --max-time 20 https://allowed.test/"),
    ("python", "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"https://allowed.test/\", timeout=20).read().decode())'"),
    ("node", "node -e 'require(\"https\").get(\"https://allowed.test/\", answer => answer.pipe(process.stdout))'"),
    ("go", "/tmp/rclone --retries 1 --low-level-retries 1 copyurl https://allowed.test/ --stdout"),
    ("java", "/tmp/java/bin/java -Xmx64m -XX:+UseSerialGC -cp /tmp/java Ask https://allowed.test/"),
];

/// This machine's Java with no more than the program needs, which looks for certificates where Debian's does.
fn java(place: &Path) -> PathBuf {
    let done = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
    let (runtime, packed) = (place.join("java"), place.join("java.tar"));
    done(Command::new("jlink").args(["--add-modules", "java.base,jdk.crypto.ec", "--output"]).arg(&runtime));
    std::fs::write(place.join("Ask.java"), ASK).unwrap();
    done(Command::new("javac").arg("-d").arg(&runtime).arg(place.join("Ask.java")));
    std::fs::remove_file(runtime.join("lib/security/cacerts")).unwrap();
    std::os::unix::fs::symlink("/etc/ssl/certs/java/cacerts", runtime.join("lib/security/cacerts")).unwrap();
    done(Command::new("tar").arg("-C").arg(place).arg("-cf").arg(&packed).arg("java"));
    packed
}

/// Where this machine has its Go program, asked as set-up asks.
fn rclone() -> PathBuf {
    let asked = Command::new("sh").args(["-c", "command -v rclone"]).output().unwrap();
    assert!(asked.status.success(), "there is no rclone here: run make setup");
    PathBuf::from(String::from_utf8(asked.stdout).unwrap().trim_end())
}

#[test]
fn every_kind_of_program_trusts_who_reads_its_tls() {
    block_on(async {
        let scene = Scene::open().await;
        let place = tempfile::tempdir().unwrap();
        let java = java(place.path());
        let passed = json!({"version": 1, "network": {"allow": [{"id": "site", "hosts": ["allowed.test"], "ports": [443]}]}});
        for class in CLASSES {
            let sandbox = scene.create(class, Some(passed.clone())).await;
            let put = |from: &Path, to: &str| {
                assert!(scene.cli(&["cp", from.to_str().unwrap(), &format!("{sandbox}:{to}")], "").status.success());
            };
            put(&java, "/tmp/java.tar");
            put(&rclone(), "/tmp/rclone");
            put(Path::new("/etc/ssl/certs/java/cacerts"), "/tmp/cacerts");
            let script = "tar -C /tmp -xf /tmp/java.tar && sudo install -D -m 644 /tmp/cacerts /etc/ssl/certs/java/cacerts";
            let told = scene.shell(&sandbox, script).await;
            assert_eq!(told.code, 0, "{class}: {told}");
            for (name, script) in PROGRAMS {
                let told = scene.shell(&sandbox, script).await;
                assert_ne!(told.code, 0, "{class}: {name}: nobody vouches for the internet's own certificate: {told}");
                assert!(told.stderr.to_lowercase().contains("certificat"), "{class}: {name}: {told}");
            }
            // With methods in the rule the requests have to be read.
            scene.change(&sandbox, site()).await;
            for (name, script) in PROGRAMS {
                let told = scene.shell(&sandbox, script).await;
                assert!(told.code == 0 && told.stdout.contains("hello from"), "{class}: {name}: {told}\n{}", scene.server.last_words());
            }
            scene.kill(&sandbox).await;
        }
        scene.close();
    });
}
