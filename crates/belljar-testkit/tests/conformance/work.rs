//! Ordinary work: what an agent does all day must simply do.

use belljar_testkit::{Lab, sh};
use belljar_types::{IsolationClass, Network, ProcessSpec};

use crate::processes::until;

pub(crate) async fn compilers_and_interpreters_work(class: IsolationClass) {
    let lab = Lab::get().await;
    let sandbox = lab.sandbox(class).await;
    let compile = "cat > a.c <<'C'\n#include <stdio.h>\n#include <pthread.h>\nvoid *f(void *x) { return x; }\nint main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); puts(\"compiled\"); }\nC\ngcc -O1 -pthread a.c -o a && ./a";
    assert_eq!(sh(&*sandbox.guest, compile).await.text(), "compiled");
    assert_eq!(sh(&*sandbox.guest, "python3 -m venv --without-pip v && v/bin/python -c 'import sqlite3, ssl, json, ctypes, multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'").await.text(), "[1, 2]");
    assert_eq!(
        sh(&*sandbox.guest, "node -e 'require(\"child_process\").exec(\"echo from node\", (e, out) => process.stdout.write(out))'")
            .await
            .text(),
        "from node"
    );
    let git = "git init -q r && cd r && git config user.email a@b && git config user.name n && echo x > f && git add f && git commit -qm m && git log --format=%s";
    assert_eq!(sh(&*sandbox.guest, git).await.text(), "m");
    assert_eq!(
        sh(&*sandbox.guest, "mkfifo p; (echo through > p &); cat p; echo x > f; ln f g; test f -ef g && echo linked").await.text(),
        "through\nlinked"
    );
    assert_eq!(
        sh(&*sandbox.guest, "sudo useradd -m other && sudo -u other sh -c 'id -un; touch ~/f' && stat -c %U /home/other/f").await.text(),
        "other\nother"
    );
    assert_eq!(
        sh(&*sandbox.guest, "free -m | grep -c Mem; ps aux | grep -c '[b]ash'; test $(nproc) -ge 1; tput -T xterm colors").await.code(),
        0
    );
    sandbox.destroy().await;
}

pub(crate) async fn packages_install_from_registries(class: IsolationClass) {
    let lab = Lab::get().await;
    let mut spec = lab.spec();
    spec.network = Network::Open;
    spec.limits.memory_bytes = 1 << 30;
    let sandbox = lab.create(class, &spec).await.unwrap();
    let apt = sh(&*sandbox.guest, "sudo apt-get update -q && sudo apt-get install -yq --no-install-recommends hello && hello").await;
    assert!(apt.text().ends_with("Hello, world!"), "{apt}");
    let pip = sh(&*sandbox.guest, "pip install -q six && python3 -c 'import six; print(six.PY3)'").await;
    assert!(pip.text().ends_with("True"), "{pip}");
    let npm = sh(&*sandbox.guest, "npm install --silent is-number && node -e 'console.log(require(\"is-number\")(5))'").await;
    assert!(npm.text().ends_with("true"), "{npm}");
    sandbox.destroy().await;
}

pub(crate) async fn a_web_server_serves(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    sh(&*sandbox.guest, "mkdir www && echo page > www/index.html").await;
    let mut server = ProcessSpec::new(["/usr/bin/python3", "-m", "http.server", "80", "--directory", "www"]);
    server.tag = Some("web".into());
    sandbox.guest.start(&server).await.unwrap();
    until(|| async { sandbox.guest.ports().await.unwrap().iter().any(|port| port.port == 80) }).await;
    assert_eq!(sh(&*sandbox.guest, "curl -s http://127.0.0.1/ http://localhost/").await.text(), "page\npage");
    sandbox.destroy().await;
}

pub(crate) async fn a_closed_sandbox_reaches_nothing(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let gateway = sh(&*sandbox.guest, "ip route 2>/dev/null | awk '/default/ {print $3}'").await;
    let gateway = String::from_utf8_lossy(&gateway.stdout).trim().to_owned();
    for target in ["1.1.1.1 443", "169.254.169.254 80", "8.8.8.8 53", gateway.as_str()] {
        let (host, port) = target.split_once(' ').unwrap_or((target, "22"));
        if host.is_empty() {
            continue;
        }
        let try_it = format!("import socket; s = socket.socket(); s.settimeout(2); s.connect(('{host}', {port}))");
        let finished = sh(&*sandbox.guest, &format!("python3 -c \"{try_it}\"")).await;
        assert_ne!(finished.code(), 0, "{target} answered");
    }
    sandbox.destroy().await;
}
