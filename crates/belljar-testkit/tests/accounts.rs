//! What a real server counts and tells, through `kill -9` at the worst moments: nothing is lost, nothing is counted twice, and whoever is told
//! of a sandbox is told in order.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "accounts/collector.rs"]
mod collector;
#[path = "accounts/receiver.rs"]
mod receiver;

use std::collections::BTreeMap;
use std::time::Duration;

use belljar_client::{Client, Consumed, CreateSandbox, NewBudget, SandboxView, StartProcess};
use belljar_testkit::{ServerProcess, block_on};
use belljar_types::PauseKind;
use collector::Collector;
use receiver::Receiver;
use tokio::sync::Mutex;

/// A data directory has one owner at a time.
static MACHINE: Mutex<()> = Mutex::const_new(());

const SETTINGS: &str = "
[sandboxes]
allow_shared_kernel = true
default_isolation = \"container\"
orphan_grace = \"1s\"
disk_reserve = \"64MiB\"
[sandboxes.default_limits]
memory = \"128MiB\"
disk = \"256MiB\"
[webhooks]
reachable = [\"127.0.0.0/8\"]
plain_http = true
[prices]
currency = \"EUR\"
cpu_hour = \"0.05\"
execution = \"0.001\"
";

async fn make(client: &Client) -> SandboxView {
    client.create_sandbox(&CreateSandbox::default(), None).await.unwrap()
}

async fn used(client: &Client, subject: &str) -> Consumed {
    client.consumed(Some(subject), None).await.unwrap().total
}

fn plus(one: Consumed, other: Consumed) -> Consumed {
    Consumed {
        cpu_micros: one.cpu_micros + other.cpu_micros,
        wall_millis: one.wall_millis + other.wall_millis,
        memory_mib_seconds: one.memory_mib_seconds + other.memory_mib_seconds,
        disk_bytes: one.disk_bytes + other.disk_bytes,
        egress_bytes: one.egress_bytes + other.egress_bytes,
        ingress_bytes: one.ingress_bytes + other.ingress_bytes,
        executions: one.executions + other.executions,
    }
}

#[test]
fn a_killed_server_forgets_and_doubles_nothing_that_it_counted() {
    block_on(async {
        let _alone = MACHINE.lock().await;
        let mut server = ServerProcess::start(SETTINGS).await;
        let client = server.client();
        let (one, other) = (make(&client).await, make(&client).await);
        let subject = |sandbox: &SandboxView| format!("sandbox:{}", sandbox.id);
        let mut cpu = 0;
        for round in 1..=4 {
            for _ in 0..3 {
                client
                    .start_process(&one.id, &StartProcess::new(["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]))
                    .await
                    .unwrap();
            }
            // Nothing of this was asked for or written before the end.
            server.kill();
            server.restart().await;
            let seen = used(&client, &subject(&one)).await;
            assert_eq!(seen.executions, 3 * round, "{seen:?}");
            assert!(seen.cpu_micros >= cpu, "{seen:?} after {cpu}");
            cpu = seen.cpu_micros;
        }
        let live = client.usage(&one.id).await.unwrap().cpu_micros;
        client.kill_sandbox(&one.id).await.unwrap();
        client.kill_sandbox(&other.id).await.unwrap();
        let (of_one, of_other) = (used(&client, &subject(&one)).await, used(&client, &subject(&other)).await);
        assert!((live..live + 1_000_000).contains(&of_one.cpu_micros), "{live} {of_one:?}");
        server.kill();
        server.restart().await;
        let all = client.consumed(None, None).await.unwrap();
        assert_eq!(all.total, plus(of_one, of_other), "the parts make the whole");
        let (cost, currency) = (all.cost.unwrap(), all.currency.unwrap());
        assert!(cost.starts_with("0.012") && currency == "EUR", "{cost} {currency}");

        let project = all.sandboxes[0].project.clone();
        let budget = NewBudget {
            subject: format!("project:{project}"),
            meter: "executions".to_owned(),
            soft: None,
            hard: Some(of_one.executions),
            at_limit: "kill".to_owned(),
        };
        assert_eq!(client.set_budget(&budget).await.unwrap().used, of_one.executions);
        server.kill();
        server.restart().await;
        let refused = client.create_sandbox(&CreateSandbox::default(), None).await.unwrap_err();
        assert_eq!(refused.code(), Some("budget_exceeded"), "{refused:?}");
        let told = format!("{refused:?}");
        assert!(told.contains(&format!("the budget of project:{project} for executions is used up")), "{told}");
        assert!(server.stop().success(), "{}", server.last_words());
    });
}

#[test]
fn what_happens_is_told_in_order_through_failures_and_kills() {
    block_on(async {
        let _alone = MACHINE.lock().await;
        let mut server = ServerProcess::start(SETTINGS).await;
        let client = server.client();
        let receiver = Receiver::open().await;
        let refused = client.add_webhook("http://169.254.169.254/latest", &[]).await.unwrap_err();
        let told = format!("{refused:?}");
        assert!(told.contains("link-local") && told.contains("url"), "{told}");
        let added = client.add_webhook(&receiver.url, &[]).await.unwrap();
        let deaf = client.add_webhook(&receiver.url, &["budget.reached".to_owned()]).await.unwrap();

        receiver.refuse(true);
        let first = make(&client).await;
        client.kill_sandbox(&first.id).await.unwrap();
        let second = make(&client).await;
        receiver.until(|told| told.refused >= 2).await;
        server.kill();
        server.restart().await;
        client.pause_sandbox(&second.id, PauseKind::Memory).await.unwrap();
        client.resume_sandbox(&second.id, None).await.unwrap();
        let budget = NewBudget {
            subject: format!("sandbox:{}", second.id),
            meter: "executions".to_owned(),
            soft: Some(1),
            hard: Some(2),
            at_limit: "kill".to_owned(),
        };
        client.set_budget(&budget).await.unwrap();
        client.start_process(&second.id, &StartProcess::new(["true"])).await.unwrap();
        while client.budgets().await.unwrap()[0].warned_at.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Its budget may have ended the sandbox before the answer came.
        if let Err(refused) = client.start_process(&second.id, &StartProcess::new(["true"])).await {
            assert_eq!(refused.code(), Some("sandbox_ended"), "{refused:?}");
        }
        while !client.sandbox(&second.id).await.unwrap().state.has_ended() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let waiting = client.webhooks().await.unwrap();
        assert_eq!(waiting[0].waiting, 8, "{waiting:?}");
        assert_eq!(waiting[0].problem.as_deref(), Some("it answered 503"));
        server.kill();
        receiver.refuse(false);
        server.restart().await;

        let mut expected = BTreeMap::new();
        expected.insert(first.id.to_string(), vec!["sandbox.created", "sandbox.ended"]);
        let life = ["sandbox.created", "sandbox.paused", "sandbox.resumed", "budget.warning", "budget.reached", "sandbox.ended"];
        expected.insert(second.id.to_string(), life.to_vec());
        receiver.until(|told| told.of(&added.secret).values().map(Vec::len).sum::<usize>() >= 8).await;
        receiver.until(|told| !told.of(&deaf.secret).is_empty()).await;
        assert_eq!(receiver.told().of(&added.secret), expected, "each in its order, and every signature right");
        let only = BTreeMap::from([(second.id.to_string(), vec!["budget.reached"])]);
        assert_eq!(receiver.told().of(&deaf.secret), only, "told of what was asked for, and of nothing else");
        while client.webhooks().await.unwrap().iter().any(|webhook| webhook.waiting > 0 || webhook.problem.is_some()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        client.remove_webhook(&added.webhook.id).await.unwrap();
        assert_eq!(client.remove_webhook(&added.webhook.id).await.unwrap_err().code(), Some("webhook_not_found"));
        assert!(server.stop().success(), "{}", server.last_words());
    });
}

/// Waits until everything that is in the log now has arrived at every sink.
async fn carried(server: &ServerProcess, collector: &Collector, file: &std::path::Path) {
    let expected = collector::log(&server.scope.data_dir.join("audit/default"));
    for _ in 0..3600 {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let [hook, otlp] = collector.lines("default");
        let sinks = [hook, otlp, collector::once("default", text.lines().map(str::to_owned))];
        for sink in &sinks {
            let common = sink.len().min(expected.len());
            assert_eq!(sink[..common], expected[..common], "byte for byte, in order");
        }
        if sinks.iter().all(|sink| sink.len() >= expected.len()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("waited three minutes for events that did not come: {}", server.last_words());
}

#[test]
fn the_log_arrives_at_every_sink_through_failures_and_kills() {
    block_on(async {
        let _alone = MACHINE.lock().await;
        let (place, collector) = (tempfile::tempdir().unwrap(), Collector::open().await);
        let (secret, file) = (place.path().join("secret"), place.path().join("audit.jsonl"));
        std::fs::write(&secret, collector::SECRET).unwrap();
        // Names of its own: the laboratory's log is older than this test, and all of it is to arrive.
        let tag = place.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.');
        let sinks = format!(
            "[[audit.sinks]]\nname = \"file-{tag}\"\nkind = \"file\"\npath = \"{}\"\n\
             [[audit.sinks]]\nname = \"hook-{tag}\"\nkind = \"webhook\"\nurl = \"http://{}/hook\"\nsecret_file = \"{}\"\n\
             [[audit.sinks]]\nname = \"otlp-{tag}\"\nkind = \"otlp\"\nurl = \"http://{}/v1/logs\"\n",
            file.display(),
            collector.address,
            secret.display(),
            collector.address
        );
        collector.refuse(true);
        let mut server = ServerProcess::start(&format!("{SETTINGS}\n{sinks}")).await;
        let client = server.client();
        let sandbox = make(&client).await;
        client.start_process(&sandbox.id, &StartProcess::new(["true"])).await.unwrap();
        while collector.refused() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server.kill();
        server.restart().await;
        client.kill_sandbox(&sandbox.id).await.unwrap();
        collector.refuse(false);
        carried(&server, &collector, &file).await;
        for _ in 0..3 {
            let sandbox = make(&client).await;
            client.kill_sandbox(&sandbox.id).await.unwrap();
            // In the middle of whatever it carries.
            server.kill();
            server.restart().await;
        }
        carried(&server, &collector, &file).await;
        assert!(server.stop().success(), "{}", server.last_words());
    });
}

#[test]
fn what_a_terminal_showed_is_shown_again() {
    block_on(async {
        let _alone = MACHINE.lock().await;
        let mut server = ServerProcess::start(&format!("{SETTINGS}\n[audit]\nrecord_terminals = true\n")).await;
        let client = server.client();
        let key = std::fs::read_to_string(server.scope.data_dir.join("first-key")).unwrap();
        let replay = |server: &ServerProcess, words: &[&str]| {
            let mut command = std::process::Command::new(server.program());
            command.arg("replay").args(words).env("BELLJAR_URL", &server.url).env("BELLJAR_API_KEY", key.trim());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let mut sandboxes = Vec::new();
        for class in ["container", "gvisor"] {
            let request = CreateSandbox { isolation: Some(class.to_owned()), ..CreateSandbox::default() };
            let sandbox = client.create_sandbox(&request, None).await.unwrap();
            let script = "printf 'gr\\303\\274n \\033[1mbold\\033[0m\\n'; stty size; sleep 0.3; echo the end";
            let process =
                StartProcess { pty: Some(belljar_types::PtySize { columns: 91, rows: 33 }), ..StartProcess::new(["sh", "-c", script]) };
            client.start_process(&sandbox.id, &process).await.unwrap();
            let quiet = StartProcess::new(["echo", "no terminal"]);
            client.start_process(&sandbox.id, &quiet).await.unwrap();
            let shown = "gr\u{fc}n \u{1b}[1mbold\u{1b}[0m\r\n33 91\r\nthe end\r\n";
            let cast = loop {
                let cast = replay(&server, &["--asciicast", sandbox.id.as_str()]);
                if cast.contains("the process ended") {
                    break cast;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            };
            client.kill_sandbox(&sandbox.id).await.unwrap();
            server.kill();
            server.restart().await;
            assert_eq!(replay(&server, &[sandbox.id.as_str()]), shown, "{class}: {cast}");
            assert_eq!(replay(&server, &["--asciicast", sandbox.id.as_str(), process.id.as_str()]), cast, "{class}");
            let lines: Vec<serde_json::Value> = cast.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!((&lines[0]["version"], &lines[0]["width"], &lines[0]["height"]), (&2.into(), &91.into(), &33.into()), "{class}");
            let recordings = client.recordings(&sandbox.id).await.unwrap();
            assert_eq!(recordings.iter().map(|recording| &recording.process).collect::<Vec<_>>(), [&process.id], "{class}");
            sandboxes.push(sandbox.id);
        }
        // A month later, the next server removes it, and only it.
        let (old, young) = (sandboxes[0].clone(), sandboxes[1].clone());
        server.kill();
        for tape in std::fs::read_dir(server.scope.data_dir.join("recordings/default").join(old.as_str())).unwrap().flatten() {
            let file = std::fs::File::options().append(true).open(tape.path()).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(31 * 24 * 3600)).unwrap();
        }
        server.restart().await;
        while !client.recordings(&old).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(client.recordings(&young).await.unwrap().len(), 1);
        assert!(server.stop().success(), "{}", server.last_words());
    });
}
