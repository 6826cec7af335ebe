//! A secret that a sandbox uses and never has.

use std::path::Path;

use belljar_client::NewSnapshot;
use belljar_testkit::block_on;
use belljar_types::{PauseKind, SandboxId};
use serde_json::json;

use crate::scene::{CLASSES, Scene};

const SECRET: &str = "s3cret-b81f0a77c2d94e";
/// Something that is there to be found, so that a search that finds nothing means something.
const FINDABLE: &str = "findable-5a0c33e1";

/// Looks at environments, arguments, files and the memory of every process. The search itself must not be found.
const SEARCH: &str = r"
import subprocess
def count(head, tail):
    script = '''
import os, re, sys
wanted = (sys.argv[1] + sys.argv[2]).encode(); found = 0
for pid in filter(str.isdigit, os.listdir('/proc')):
    if int(pid) == os.getpid(): continue
    for name in ('environ', 'cmdline'):
        try: found += open('/proc/%s/%s' % (pid, name), 'rb').read().count(wanted)
        except OSError: pass
    try:
        memory = open('/proc/%s/mem' % pid, 'rb', 0)
        for line in open('/proc/%s/maps' % pid):
            span, rights = line.split()[:2]
            if not rights.startswith('rw'): continue
            first, last = (int(part, 16) for part in span.split('-'))
            if last - first > 64 << 20: continue
            try: memory.seek(first); found += memory.read(last - first).count(wanted)
            except (OSError, ValueError, OverflowError): pass
    except OSError: pass
for top in ('/etc', '/home', '/tmp', '/root', '/run', '/var'):
    for place, _, names in os.walk(top):
        for name in names:
            path = os.path.join(place, name)
            try:
                if os.path.isfile(path) and os.path.getsize(path) < 32 << 20: found += open(path, 'rb').read().count(wanted)
            except OSError: pass
print(found)
'''
    done = subprocess.run(['sudo', 'python3', '-c', script, head, tail], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)
";

const POST: &str = r"
c = ssl.create_default_context(cafile='/etc/ssl/certs/ca-certificates.crt')
s = c.wrap_socket(socket.create_connection(('api.test', 443)), server_hostname='api.test')
key = os.environ['MODEL_API_KEY']
s.sendall(('POST /v1/messages HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer ' + key + '\r\nContent-Length: 2\r\n\r\n{}').encode())
answer = recv_some(s).decode()
print(key); print(answer)
if not answer.startswith('HTTP/1.1 200'): stopped(answer)
";

/// Keeps everything on the sandboxes' side of the gateway, as it goes by.
const CAPTURE: &str = r"
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); out = open(sys.argv[1], 'wb'); open(sys.argv[1] + '.ready', 'w').close()
while True: out.write(s.recv(65536)); out.flush()
";

struct Capture(std::process::Child);

impl Capture {
    fn begin(scene: &Scene, place: &Path) -> Self {
        let (netns, file) = (format!("/run/belljar-{}/netns/gateway", scene.server.scope.instance), place.join("frames"));
        let mut command = std::process::Command::new("nsenter");
        let child = command.arg(format!("--net={netns}")).args(["python3", "-c", CAPTURE]).arg(&file).spawn().unwrap();
        while !place.join("frames.ready").exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Self(child)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _gone = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// How often something is in the files below a place, images of memory of any size among them.
fn occurrences(place: &Path, wanted: &str) -> usize {
    let found = std::process::Command::new("grep").args(["-raoFh", "--", wanted]).arg(place).output().unwrap();
    assert!(matches!(found.status.code(), Some(0 | 1)), "{}: {}", place.display(), String::from_utf8_lossy(&found.stderr));
    found.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count()
}

/// Lives on with something in its memory that is in no file, argument or variable, and that nobody wrote down in one piece.
fn remember(marker: &str) -> String {
    let (head, tail) = marker.split_at(marker.len() / 2);
    format!("kept = ['%s%s' % pair for pair in [('{head}', '{tail}')] * 1000]\nopen('/tmp/kept', 'w').close()\ntime.sleep(100000)")
}

/// What a sandbox left on the disk when it stood still, was captured and was carried away: no secret, though what was in its memory is there.
async fn images_hold_no_secret(scene: &Scene, sandbox: &SandboxId, class: &str) {
    let marker = format!("remembered-{class}-9c41");
    scene.start(sandbox, &remember(&marker)).await;
    scene.python(sandbox, "while not os.path.exists('/tmp/kept'): time.sleep(0.01)").await;
    let pool = scene.server.scope.data_dir.join("pool");
    let check = |what: &str, place: &Path, remembers: bool| {
        assert_eq!(occurrences(place, SECRET), 0, "{class}: {what}");
        assert!(occurrences(place, FINDABLE) > 0, "{class}: {what}: its files are there");
        assert_eq!(occurrences(place, &marker) > 0, remembers, "{class}: {what}: its memory is there");
    };
    let with_memory = class == "gvisor";
    let taken = scene.client.take_snapshot(sandbox, &NewSnapshot::default()).await.unwrap();
    assert_eq!(taken.kind == "memory", with_memory, "{class}");
    check("a snapshot", &pool.join("snapshots"), with_memory);
    let carried = tempfile::tempdir().unwrap();
    let file = carried.path().join("carried");
    std::fs::write(&file, scene.cli(&["snapshot", "export", taken.id.as_str()], "").stdout).unwrap();
    check("a snapshot that travels", carried.path(), with_memory);
    scene.client.remove_snapshot(taken.id.as_str()).await.unwrap();

    scene.client.pause_sandbox(sandbox, PauseKind::Memory).await.unwrap();
    check("standing still", &pool, with_memory);
    assert_eq!(occurrences(&scene.server.scope.data_dir.join("sandboxes"), SECRET), 0, "{class}");
    assert_eq!(occurrences(&pool.join("paused"), &marker) > 0, with_memory, "{class}: the image of its memory");
    scene.client.resume_sandbox(sandbox, None).await.unwrap();
}

#[test]
fn a_secret_is_added_outside_and_is_nowhere_inside_nor_in_any_record() {
    block_on(async {
        let scene = Scene::open().await;
        scene.cli(&["secret", "set", "model-key"], SECRET);
        assert!(String::from_utf8(scene.cli(&["secret", "ls"], "").stdout).unwrap().lines().any(|line| line == "model-key"));
        let policy = json!({"version": 1,
            "network": {"allow": [{"id": "model", "hosts": ["api.test"], "ports": [443]}, {"id": "plain", "hosts": ["allowed.test"], "ports": [80]}]},
            "secrets": [{"secret": "model-key", "hosts": ["api.test"], "methods": ["POST"], "paths": ["/v1/**"], "header": "authorization",
                "value": "Bearer {}", "variable": "MODEL_API_KEY"}]});
        for class in CLASSES {
            let sandbox = scene.create(class, Some(policy.clone())).await;
            let frames = tempfile::tempdir().unwrap();
            let capture = Capture::begin(&scene, frames.path());
            let told = scene.python(&sandbox, POST).await;
            assert_eq!(told.code, 0, "{class}: {told}\n{}", scene.server.last_words());
            let plain = format!("http('allowed.test', 80, b'GET /{FINDABLE} HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n')");
            assert!(scene.gets_through(&sandbox, &plain).await, "{class}");
            drop(capture);
            assert_eq!(occurrences(frames.path(), SECRET), 0, "{class}: on the cable");
            assert!(occurrences(frames.path(), FINDABLE) > 0, "{class}: what is there to be found on the cable is");
            assert!(told.stdout.contains("belljar-placeholder-model-key") && !told.stdout.contains(SECRET), "{class}: {told}");
            let seen = scene.internet.seen().join("\n");
            assert!(seen.contains(&format!("authorization: Bearer {SECRET}")), "{class}: it went out: {seen}");
            assert!(!seen.contains("placeholder"), "{class}: and only it: {seen}");

            let (head, tail) = SECRET.split_at(6);
            let (there, here) = FINDABLE.split_at(6);
            scene.python(&sandbox, &format!("open('/tmp/there', 'w').write('{FINDABLE}')")).await;
            let search = format!("{SEARCH}\nprint(count('{head}', '{tail}'), count('{there}', '{here}') > 0)");
            let found = scene.python(&sandbox, &search).await;
            assert_eq!(found.stdout.trim(), "0 True", "{class}: {found}");
            // Its memory on disk, where the class has that, and its files.
            images_hold_no_secret(&scene, &sandbox, class).await;
            let again = scene.python(&sandbox, POST).await;
            assert_eq!(again.code, 0, "{class}: after a pause: {again}");
            assert!(scene.internet.seen().join("\n").contains(SECRET), "{class}: after a pause");
            scene.kill(&sandbox).await;
        }
        // Log and store of the server, audit log, the secrets themselves. Where something of the kind is to be found, it is.
        let (data, own) = (&scene.server.scope.data_dir, scene.server.directory());
        for (place, there) in [
            (own.join("log"), "belljar serves"),
            (own.join("belljar.db"), ""),
            (data.join("audit"), "model-key"),
            (data.join("secrets"), ""),
        ] {
            assert_eq!(occurrences(&place, SECRET), 0, "{}", place.display());
            assert!(place.exists() && (there.is_empty() || occurrences(&place, there) > 0), "{}: the search works", place.display());
        }
        let names: Vec<_> = std::fs::read_dir(own).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert!(names.iter().any(|name| name == "belljar.db-wal"), "what the store has not tidied yet is searched too: {names:?}");
        assert_eq!(occurrences(own, SECRET), 0);
        assert!(occurrences(own, "model-key") > 0, "the policies in the store name it");
        // Everything the server keeps, but for the disk of the sandboxes, which was searched file by file.
        for entry in std::fs::read_dir(data).unwrap().flatten().filter(|entry| entry.file_name() != "pool.img") {
            assert_eq!(occurrences(&entry.path(), SECRET), 0, "{}", entry.path().display());
        }
        scene.cli(&["secret", "rm", "model-key"], "");
        scene.close();
    });
}
