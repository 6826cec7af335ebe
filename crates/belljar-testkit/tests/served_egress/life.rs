//! Pauses, forks, kills of the server, a firewall that does not load: the policy holds, or nothing runs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use belljar_client::NewForks;
use belljar_testkit::block_on;
use belljar_types::{PauseKind, SandboxId};
use serde_json::json;

use crate::internet::EVIL;
use crate::scene::{CLASSES, Scene, elsewhere, site};

/// Its site is reached, and nothing else is.
async fn held(scene: &Scene, sandbox: &SandboxId, when: &str) {
    assert!(scene.gets_through(sandbox, "get('allowed.test')").await, "{when}: {}", scene.server.last_words());
    scene.internet.seen();
    for way in ["get('evil.test')".to_owned(), format!("get('{EVIL}')"), "get('api.test')".to_owned()] {
        assert!(!scene.gets_through(sandbox, &way).await, "{when}: {way}");
    }
    let is_of_the_site =
        |line: &String| line == "dns allowed.test" || line.starts_with("tcp 203.0.113.10:80") || line.contains("host: allowed.test");
    let seen = scene.internet.seen();
    assert!(seen.iter().all(is_of_the_site), "{when}: {seen:?}");
}

#[test]
fn pauses_and_forks_keep_the_policy() {
    block_on(async {
        let scene = Scene::open().await;
        for class in CLASSES {
            let sandbox = scene.create(class, Some(site())).await;
            for kind in [PauseKind::Memory, PauseKind::Standby, PauseKind::Filesystem] {
                scene.client.pause_sandbox(&sandbox, kind).await.unwrap();
                scene.client.resume_sandbox(&sandbox, None).await.unwrap();
                held(&scene, &sandbox, &format!("{class}: resumed after {kind:?}")).await;
            }
            let request = NewForks { count: 2, ..NewForks::default() };
            for fork in scene.client.fork_sandbox(&sandbox, &request).await.unwrap() {
                let fork = fork.sandbox.unwrap_or_else(|| panic!("{:?}", fork.error)).id;
                held(&scene, &fork, &format!("{class}: a fork")).await;
                scene.kill(&fork).await;
            }
            held(&scene, &sandbox, &format!("{class}: after its forks")).await;
            scene.client.pause_sandbox(&sandbox, PauseKind::Memory).await.unwrap();
            scene.change(&sandbox, elsewhere()).await;
            let resumed = scene.client.resume_sandbox(&sandbox, None).await;
            resumed.unwrap_or_else(|error| panic!("{class}: {error:?}\n{}", scene.server.last_words()));
            assert!(!scene.gets_through(&sandbox, "get('allowed.test')").await, "{class}: changed while it stood still");
            assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}");
            assert!(scene.gets_through(&sandbox, "get('api.test')").await, "{class}: changed while it stood still");
            scene.kill(&sandbox).await;
        }
        scene.close();
    });
}

/// Asks for the site again and again, and for what is not allowed; leaves a mark for each time it got there.
const INSIST: &str = r"
while True:
    for name in ('allowed.test', 'evil.test'):
        try:
            s = socket.create_connection((name, 80), 2); s.sendall(b'GET / HTTP/1.1\r\nHost: ' + name.encode() + b'\r\nConnection: close\r\n\r\n')
            if b' 200 ' in s.recv(4096): open('/tmp/' + name, 'a').write('x')
        except OSError: pass
    time.sleep(0.02)
";

/// Waits until the site was reached again.
const AGAIN: &str = r"
size = lambda: os.path.getsize('/tmp/allowed.test') if os.path.exists('/tmp/allowed.test') else 0
before = size(); end = time.time() + 60
while size() <= before:
    if time.time() > end: stopped('not reached again')
    time.sleep(0.02)
if os.path.exists('/tmp/evil.test'): stopped('somebody else was reached')
";

#[test]
fn nothing_flows_while_the_server_is_dead_and_the_next_one_holds_the_same_policy() {
    block_on(async {
        let mut scene = Scene::open().await;
        let mut sandboxes = Vec::new();
        for class in CLASSES {
            let sandbox = scene.create(class, Some(site())).await;
            scene.start(&sandbox, INSIST).await;
            assert!(scene.gets_through(&sandbox, AGAIN).await, "{class}: the control: it gets there");
            sandboxes.push((class, sandbox));
        }
        for _ in 0..2 {
            scene.server.kill();
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            scene.internet.seen();
            // They go on trying; a look at a quiet line has to last a while to mean something.
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            assert_eq!(scene.internet.seen(), Vec::<String>::new(), "nothing flows while the server is dead");
            scene.server.restart().await;
            scene.client = scene.server.client();
            for (class, sandbox) in &sandboxes {
                assert!(scene.gets_through(sandbox, AGAIN).await, "{class}: {}", scene.server.last_words());
                held(&scene, sandbox, &format!("{class}: taken over")).await;
            }
        }
        assert!(scene.internet.seen().iter().all(|line| !line.contains(EVIL)));
        for (_, sandbox) in &sandboxes {
            scene.kill(sandbox).await;
        }
        scene.close();
    });
}

/// The certificate that programs inside are to trust, and whether what it is for can be asked.
const TRUSTED: &str = r"
import subprocess
assert subprocess.run(['curl', '-s', '-o', '/dev/null', 'https://allowed.test/']).returncode == 0
print(open('/etc/ssl/certs/belljar.pem').read())
bundle = open('/etc/ssl/certs/ca-certificates.crt').read()
assert bundle.count('# belljar: begin') == 1 and open('/etc/ssl/certs/belljar.pem').read() in bundle
";

#[test]
fn whoever_is_resumed_trusts_a_new_authority_and_no_older_one() {
    block_on(async {
        let scene = Scene::open().await;
        let policy =
            json!({"version": 1, "network": {"allow": [{"id": "site", "hosts": ["allowed.test"], "ports": [443], "inspect": true}]}});
        for class in CLASSES {
            let sandbox = scene.create(class, Some(policy.clone())).await;
            let before = scene.python(&sandbox, TRUSTED).await;
            assert_eq!(before.code, 0, "{class}: {before}");
            let mut known = vec![before.stdout];
            // A container that stands still in memory is the same run when it goes on.
            let ways: &[PauseKind] = if class == "gvisor" { &[PauseKind::Filesystem, PauseKind::Memory] } else { &[PauseKind::Filesystem] };
            for kind in ways.iter().copied() {
                scene.client.pause_sandbox(&sandbox, kind).await.unwrap();
                scene.client.resume_sandbox(&sandbox, None).await.unwrap();
                let after = scene.python(&sandbox, TRUSTED).await;
                assert_eq!(after.code, 0, "{class}: {after}");
                assert!(
                    after.stdout.contains("BEGIN CERTIFICATE") && !known.contains(&after.stdout),
                    "{class}: another run, another authority; {kind:?}"
                );
                // Whoever still trusts the one of before trusts nobody who answers now.
                let old = serde_json::to_string(known.last().unwrap()).unwrap();
                let refused = format!(
                    "open('/tmp/old.pem', 'w').write({old}); import subprocess; print(subprocess.run(['curl', '-s', '--cacert', '/tmp/old.pem', 'https://allowed.test/'], env={{}}).returncode)"
                );
                let refused = scene.python(&sandbox, &refused).await;
                assert_eq!(refused.stdout.trim(), "60", "{class}: {refused}");
                known.push(after.stdout);
            }
            scene.kill(&sandbox).await;
        }
        scene.close();
    });
}

#[test]
fn a_sandbox_that_spoils_its_certificates_is_still_taken_over_and_let_out() {
    block_on(async {
        let mut scene = Scene::open().await;
        for class in CLASSES {
            // Reading TLS needs a certificate inside.
            let policy = json!({"version": 1, "network": {"allow": [{"id": "site", "hosts": ["allowed.test"], "ports": [80, 443], "inspect": true}]}});
            let sandbox = scene.create(class, Some(policy)).await;
            let spoil = "import subprocess; subprocess.run(['sudo', 'sh', '-c', 'rm -rf /etc/ssl && touch /etc/ssl'], check=True)";
            assert_eq!(scene.python(&sandbox, spoil).await.code, 0);
            scene.server.kill();
            scene.server.restart().await;
            scene.client = scene.server.client();
            held(&scene, &sandbox, class).await;
            scene.kill(&sandbox).await;
        }
        scene.close();
    });
}

/// A directory for `PATH` with everything of this machine but the firewall's program.
fn without_nft(directory: &Path) {
    for place in ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"] {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            if entry.file_name() != "nft" {
                let _known = std::os::unix::fs::symlink(entry.path(), directory.join(entry.file_name()));
            }
        }
    }
}

#[test]
fn without_its_rules_nothing_starts() {
    block_on(async {
        let mut scene = Scene::open().await;
        let sandbox = scene.create("container", Some(site())).await;
        scene.kill(&sandbox).await;
        assert!(scene.server.stop().success(), "the control: with its rules it runs");
        let place = tempfile::tempdir().unwrap();
        without_nft(place.path());
        let refusing = "#!/bin/sh\necho 'Error: Could not process rule: Operation not supported' >&2\nexit 1\n";
        for (nft, words) in [(None, "nftables"), (Some(refusing), "Operation not supported")] {
            if let Some(script) = nft {
                std::fs::write(place.path().join("nft"), script).unwrap();
                std::fs::set_permissions(place.path().join("nft"), std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            let agent = std::env::var_os("BELLJAR_GUEST")
                .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/guest/belljar-guest").into());
            let output = Command::new(scene.server.program())
                .args(["serve", "--config"])
                .arg(scene.server.directory().join("belljar.toml"))
                .arg("--guest")
                .arg(agent)
                .env("PATH", place.path())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{said}");
            assert!(said.contains("load the firewall rules") && said.contains(words), "{said}");
        }
        scene.server.restart().await;
        scene.client = scene.server.client();
        scene.close();
    });
}
