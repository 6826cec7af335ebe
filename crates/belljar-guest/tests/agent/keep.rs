//! `belljar-keep` as programs inside use it, and what the host hears of it.

use belljar_ports::Guest;
use belljar_types::{ArtifactId, ProcessSpec};
use futures_util::StreamExt;

use crate::harness::{TestAgent, finish};

async fn start() -> TestAgent {
    let agent = TestAgent::start().await;
    std::fs::copy(env!("CARGO_BIN_EXE_belljar-guest"), agent.host_path("belljar-keep")).unwrap();
    agent
}

fn asking(agent: &TestAgent, script: &str) -> ProcessSpec {
    let mut spec = ProcessSpec::new(["bash", "-c", script]);
    spec.env.insert("PATH".into(), format!("{}:/usr/bin:/bin", agent.directory.path().display()));
    spec.env.insert("BELLJAR_KEEP_SOCKET".into(), agent.host_path("keep.sock").display().to_string());
    spec
}

#[tokio::test]
async fn a_wish_is_told_until_it_is_answered_and_only_to_the_last_who_listens() {
    let agent = start().await;
    let mut first = agent.client.wishes().await.unwrap();
    let (_, output) = agent.client.start_attached(&asking(&agent, "cd /usr; belljar-keep bin/env --name env --type a/b")).await.unwrap();
    let wish = first.next().await.unwrap().unwrap();
    assert_eq!(
        (wish.path.as_bytes(), wish.name.as_deref(), wish.media_type.as_deref()),
        (b"/usr/bin/env".as_slice(), Some("env"), Some("a/b"))
    );
    let mut second = agent.client.wishes().await.unwrap();
    assert!(first.next().await.is_none());
    assert_eq!(second.next().await.unwrap().unwrap(), wish);
    let id = ArtifactId::random();
    agent.client.answer_wish(wish.id, Ok(&id)).await.unwrap();
    let finished = finish(output).await.unwrap();
    assert_eq!((finished.text(), finished.code()), (format!("{id}\n").as_str().into(), Some(0)));
    agent.client.answer_wish(wish.id, Err("twice")).await.unwrap();

    let (_, output) = agent.client.start_attached(&asking(&agent, "belljar-keep /x")).await.unwrap();
    let wish = second.next().await.unwrap().unwrap();
    agent.client.answer_wish(wish.id, Err("because")).await.unwrap();
    let finished = finish(output).await.unwrap();
    assert_eq!((finished.stderr.as_slice(), finished.code()), (&b"belljar-keep: because\n"[..], Some(1)));
}

#[tokio::test]
async fn whoever_leaves_takes_the_wish_back_and_only_so_many_wait() {
    let agent = start().await;
    let script = "for i in $(seq 30); do belljar-keep /etc/passwd & pids=\"$pids $!\"; done
        alive() { n=0; for p in $pids; do kill -0 $p && n=$((n + 1)); done; }
        alive; until [ $n -le 16 ]; do sleep 0.05; alive; done; sleep 0.3; alive; echo $n; kill $pids; wait; echo over";
    let finished = agent.run(&asking(&agent, script)).await;
    assert_eq!(finished.text(), "16\nover\n", "{finished:?}");
    let mut wishes = agent.client.wishes().await.unwrap();
    let (_, _output) = agent.client.start_attached(&asking(&agent, "belljar-keep /last")).await.unwrap();
    loop {
        // Those that were just killed may still be told.
        let wish = wishes.next().await.unwrap().unwrap();
        if wish.path.as_bytes() == b"/last" {
            break;
        }
        assert_eq!(wish.path.as_bytes(), b"/etc/passwd");
    }
}
