//! A real terminal, by tmux: what is typed goes in as keys, what is shown is read from the screen.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::scene::Scene;

/// Longer than anything takes; whoever waits in vain fails with the screen shown.
const IN_VAIN: Duration = Duration::from_secs(120);

/// A window with a program in it.
pub(crate) struct Terminal {
    name: String,
    _directory: tempfile::TempDir,
    pieces: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Terminal {
    /// A window of 100 columns and 30 rows in which a plain shell runs, with the program on its path.
    pub(crate) fn open(scene: &Scene) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let directory = tempfile::tempdir().unwrap();
        let name = format!("belljar-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let pipe = directory.path().join("screen");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (send, pieces) = channel();
        let reading = pipe.clone();
        std::thread::spawn(move || {
            let mut from = File::open(reading).unwrap();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                if send.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let terminal = Self { name, _directory: directory, pieces, seen: Vec::new() };
        let programs = Path::new(env!("CARGO_BIN_EXE_belljar")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let shell = format!("PATH='{path}' BELLJAR_URL={} BELLJAR_API_KEY={} PS1='here> ' exec sh", scene.url, scene.key);
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", &shell]);
        terminal.tmux(&["pipe-pane", "-O", &format!("exec cat > '{}'", pipe.display())]);
        terminal
    }

    /// Presses keys, named as tmux names them.
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types text and presses Enter.
    pub(crate) fn enter(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.keys(&["Enter"]);
    }

    /// Types text.
    pub(crate) fn text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Pastes a file.
    pub(crate) fn paste(&self, file: &Path) {
        self.tmux(&["load-buffer", file.to_str().unwrap()]);
        self.tmux(&["paste-buffer"]);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// Waits until the program has printed this since the last wait.
    pub(crate) fn wait_for(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen.windows(text.len()).position(|window| window == text.as_bytes()) {
                self.seen.drain(..at + text.len());
                return;
            }
            match self.pieces.recv_timeout(IN_VAIN) {
                Ok(piece) => self.seen.extend(piece),
                Err(_) => panic!("waited for {text:?} in vain; the screen shows:\n{}", self.screen()),
            }
        }
    }

    /// What the screen shows, with colours.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-e", "-p"])
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.name]).args(arguments).stdin(Stdio::null()).output();
        let output = output.expect("the tests of the shell need tmux; make setup installs it");
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.name, "kill-server"]).output();
    }
}
