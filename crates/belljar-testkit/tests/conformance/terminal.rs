//! Terminals: sizes, job control, the interrupt key.

use std::time::Duration;

use belljar_ports::{Guest, OutputStream};
use belljar_testkit::{Lab, Sandbox};
use belljar_types::{IsolationClass, OutputEvent, ProcessSpec, PtySize, Termination};
use bytes::Bytes;
use futures_util::StreamExt;

/// Somebody who types and looks at the screen.
struct Typist {
    spec: ProcessSpec,
    output: OutputStream,
    screen: String,
    typed: u64,
}

impl Typist {
    async fn sit_down(sandbox: &Sandbox, argv: &[&str]) -> Self {
        let mut spec = ProcessSpec::new(argv);
        spec.pty = Some(PtySize { columns: 80, rows: 24 });
        spec.stdin = true;
        spec.env.insert("PS1".into(), "ready> ".into());
        let (_, output) = sandbox.guest.start_attached(&spec).await.unwrap();
        Self { spec, output, screen: String::new(), typed: 0 }
    }

    async fn type_in(&mut self, guest: &dyn Guest, text: &str) {
        guest.write_stdin(&self.spec.id, self.typed, Bytes::copy_from_slice(text.as_bytes())).await.unwrap();
        self.typed += text.len() as u64;
    }

    /// Reads until the text shows, and forgets the screen up to it.
    async fn see(&mut self, text: &str) {
        let look = async {
            while !self.screen.contains(text) {
                match self.output.next().await.expect("the terminal closed").unwrap() {
                    OutputEvent::Data { bytes, .. } => self.screen.push_str(&String::from_utf8_lossy(&bytes)),
                    other => panic!("waiting for {text:?}: {other:?}"),
                }
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(60), look).await.is_ok();
        assert!(found, "{text:?} never showed; the screen was {:?}", self.screen);
        let end = self.screen.find(text).unwrap() + text.len();
        self.screen.drain(..end);
    }
}

pub(crate) async fn resizing_is_seen_inside(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let mut typist = Typist::sit_down(&sandbox, &["/bin/bash", "--norc", "-i"]).await;
    typist.see("ready> ").await;
    typist.type_in(&*sandbox.guest, "stty size\n").await;
    typist.see("24 80").await;
    // Before it prompts, bash reads the size and writes back what it read: one that is set in between is lost, here as on any terminal.
    typist.see("ready> ").await;
    sandbox.guest.resize(&typist.spec.id, PtySize { columns: 132, rows: 43 }).await.unwrap();
    typist.type_in(&*sandbox.guest, "stty size\n").await;
    typist.see("43 132").await;
    typist.see("ready> ").await;
    typist.type_in(&*sandbox.guest, "trap 'echo window=$(stty size)' WINCH; tty; echo set=$?\n").await;
    typist.see("/dev/pts/").await;
    typist.see("set=0").await;
    typist.see("ready> ").await;
    sandbox.guest.resize(&typist.spec.id, PtySize { columns: 100, rows: 30 }).await.unwrap();
    // A shell runs its trap between two commands, so it needs one after the news has reached it.
    typist.type_in(&*sandbox.guest, "sleep 2\n").await;
    typist.see("window=30 100").await;
    sandbox.destroy().await;
}

pub(crate) async fn a_shell_has_job_control(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let mut typist = Typist::sit_down(&sandbox, &["/bin/bash", "--norc", "-i"]).await;
    typist.see("ready> ").await;
    // It says that it runs: a key that comes while the shell still starts it would be the shell's. And it stays the program that it is: gVisor
    // forgets a stop that comes while one program takes the place of another.
    typist.type_in(&*sandbox.guest, "python3 -c \"import time; print('run' 'ning', flush=True); time.sleep(1000)\"\n").await;
    typist.see("running").await;
    typist.type_in(&*sandbox.guest, "\x1a").await;
    typist.see("Stopped").await;
    typist.type_in(&*sandbox.guest, "bg; jobs\n").await;
    typist.see("Running").await;
    typist.type_in(&*sandbox.guest, "kill %1; wait; exit 5\n").await;
    let exit = sandbox.guest.wait(&typist.spec.id, Duration::from_secs(60)).await.unwrap().unwrap();
    assert_eq!(exit.termination, Termination::Exited(5));
    sandbox.destroy().await;
}

pub(crate) async fn ctrl_c_interrupts(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let mut typist = Typist::sit_down(&sandbox, &["/usr/bin/python3", "-q"]).await;
    typist.see(">>> ").await;
    typist.type_in(&*sandbox.guest, "import time; print('sleep' + 'ing'); time.sleep(1000)\n").await;
    typist.see("sleeping").await;
    typist.type_in(&*sandbox.guest, "\x03").await;
    typist.see("KeyboardInterrupt").await;
    typist.type_in(&*sandbox.guest, "import os; os._exit(3)\n").await;
    let exit = sandbox.guest.wait(&typist.spec.id, Duration::from_secs(60)).await.unwrap().unwrap();
    assert_eq!(exit.termination, Termination::Exited(3));
    sandbox.destroy().await;
}
