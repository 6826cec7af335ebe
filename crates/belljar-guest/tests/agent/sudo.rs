//! `sudo` as programs inside use it.

use belljar_ports::Guest;
use belljar_types::{PrivilegePolicy, ProcessSpec, PtySize};
use bytes::Bytes;

use crate::harness::{Finished, TestAgent, config, finish, user};

/// An agent whose default user is an ordinary one, and its `sudo` on the path.
async fn start(privilege: PrivilegePolicy) -> TestAgent {
    let mut config = config();
    config.default_user = Some(user("nobody"));
    config.privilege = privilege;
    let agent = TestAgent::start_with(config).await;
    std::fs::set_permissions(agent.directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_belljar-guest"), agent.host_path("sudo")).unwrap();
    agent
}

fn spec(agent: &TestAgent, script: &str) -> ProcessSpec {
    let mut spec = ProcessSpec::new(["bash", "-c", script]);
    spec.env.insert("PATH".into(), format!("{}:/usr/bin:/bin", agent.directory.path().display()));
    spec.env.insert("BELLJAR_SUDO_SOCKET".into(), agent.host_path("sudo.sock").display().to_string());
    spec.env.insert("KEPT".into(), "kept".into());
    spec.cwd = Some(belljar_types::GuestPath::new("/usr").unwrap());
    spec
}

async fn run(agent: &TestAgent, script: &str) -> Finished {
    agent.run(&spec(agent, script)).await
}

#[tokio::test]
async fn commands_run_as_root_with_the_askers_stdio_directory_and_exit_code() {
    let agent = start(PrivilegePolicy::RootAllowed).await;
    let finished =
        run(&agent, "id -un; echo in | sudo sh -c 'id -un; cat; pwd; echo $HOME $SUDO_USER [$KEPT]; echo err >&2; exit 9'").await;
    assert_eq!(finished.text(), "nobody\nroot\nin\n/usr\n/root nobody []\n", "{finished:?}");
    assert_eq!((finished.stderr.as_slice(), finished.code()), (&b"err\n"[..], Some(9)));
}

#[tokio::test]
async fn its_options_work() {
    let agent = start(PrivilegePolicy::RootAllowed).await;
    let finished = run(
        &agent,
        "sudo -u daemon id -un; sudo -E printenv KEPT; sudo A=b printenv A; sudo -n -H -- id -u; sudo -i pwd; sudo -s 'echo  two'; sudo -v",
    )
    .await;
    assert_eq!(finished.text(), "daemon\nkept\nb\n0\n/root\n", "{finished:?}");
    let finished = run(&agent, "sudo no-such-program; echo $?; sudo -u ghost id; echo $?; sudo sh -c 'kill -9 $$'; echo $?").await;
    assert_eq!(finished.text(), "1\n1\n137\n");
    let said = String::from_utf8_lossy(&finished.stderr).into_owned();
    assert!(said.contains("no program no-such-program in PATH") && said.contains("unknown user ghost"), "{said}");
}

#[tokio::test]
async fn a_policy_without_root_is_told() {
    let agent = start(PrivilegePolicy::UserOnly).await;
    let finished = run(&agent, "sudo id").await;
    assert_eq!(finished.code(), Some(1));
    assert!(String::from_utf8_lossy(&finished.stderr).contains("privilege policy is user-only"), "{finished:?}");
    let mut root = ProcessSpec::new(["id"]);
    root.user = Some(user("root"));
    assert!(agent.client.start(&root).await.is_err());
}

#[tokio::test]
async fn other_users_may_not() {
    let agent = start(PrivilegePolicy::RootAllowed).await;
    let mut spec = spec(&agent, "sudo id -u");
    spec.user = Some(user("daemon"));
    let finished = agent.run(&spec).await;
    assert!(String::from_utf8_lossy(&finished.stderr).contains("daemon may not use sudo"), "{finished:?}");
}

#[tokio::test]
async fn in_a_terminal_the_command_has_one_and_interrupts_reach_it() {
    let agent = start(PrivilegePolicy::RootAllowed).await;
    let mut spec = spec(
        &agent,
        "sudo bash -c 'tty; stty size; id -un; trap \"echo caught; exit 4\" INT; echo ready; while :; do sleep 0.1; done'; echo code=$?",
    );
    spec.pty = Some(PtySize { columns: 77, rows: 22 });
    let (_, output) = agent.client.start_attached(&spec).await.unwrap();
    let interrupt = async {
        loop {
            let info = agent.client.processes().await.unwrap();
            let written = info.iter().find(|info| info.id == spec.id).unwrap().written.stdout;
            let so_far = agent.client.attach(&spec.id, belljar_types::Offsets::default()).await.unwrap();
            if written > 0 && first_bytes(so_far).await.contains("ready") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        agent.client.write_stdin(&spec.id, 0, Bytes::from_static(b"\x03")).await.unwrap();
    };
    let (finished, ()) = tokio::join!(finish(output), interrupt);
    let text = finished.unwrap().text();
    assert!(
        text.contains("/dev/pts/") && text.contains("22 77") && text.contains("root") && text.contains("caught") && text.contains("code=4"),
        "{text:?}"
    );
}

async fn first_bytes(mut output: belljar_ports::OutputStream) -> String {
    use futures_util::StreamExt;
    match output.next().await {
        Some(Ok(belljar_types::OutputEvent::Data { bytes, .. })) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => String::new(),
    }
}

#[tokio::test]
async fn a_signal_to_sudo_reaches_the_command_and_an_end_of_sudo_ends_it() {
    let agent = start(PrivilegePolicy::RootAllowed).await;
    let finished = run(&agent, "sudo bash -c 'trap \"echo term; exit 3\" TERM; echo up; while :; do sleep 0.05; done' & p=$!; sleep 0.5; kill -TERM $p; wait $p; echo $?").await;
    assert_eq!(finished.text(), "up\nterm\n3\n");
    let mark = format!("72{}", std::process::id());
    run(&agent, &format!("sudo sleep {mark} & sleep 0.5; kill -9 $!")).await;
    for _ in 0..100 {
        if agent.shell(&format!("pgrep -fx 'sleep {mark}'")).await.text().is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the command outlives its sudo");
}
