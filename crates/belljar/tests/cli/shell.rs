//! `belljar shell` in a real terminal.

use crate::scene::Scene;
use crate::terminal::Terminal;

#[test]
fn a_shell_is_a_terminal_in_every_way() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let mut terminal = Terminal::open(&scene);
    terminal.enter(&format!("belljar shell {}; echo code=$?", sandbox.id));
    terminal.wait_for("user@");

    // The size of the window, and that it follows.
    terminal.enter("stty size; tty; echo si''ze");
    terminal.wait_for("30 100");
    terminal.wait_for("/dev/pts/");
    terminal.wait_for("size");
    terminal.enter("trap 'stty size' WINCH; echo li''stening; while :; do sleep 0.1; done");
    terminal.wait_for("listening");
    terminal.resize(120, 40);
    terminal.wait_for("40 120");

    // Ctrl-C ends what runs and leaves the shell. What runs says so itself: an interrupt that comes while the shell still starts it
    // is the shell's, which then goes on to wait for a program that nobody interrupted.
    terminal.keys(&["C-c"]);
    terminal.enter("trap - WINCH; sh -c 'echo run''ning; exec sleep 1000'");
    terminal.wait_for("running");
    terminal.keys(&["C-c"]);
    terminal.enter("echo inter''rupted=$?");
    terminal.wait_for("interrupted=130");

    // Colours, on the screen and not only on the wire.
    terminal.enter("printf '\\033[31mr''ed\\033[0m\\n'; tput colors");
    terminal.wait_for("red");
    terminal.wait_for("256");
    assert!(terminal.screen().contains("\u{1b}[31mred"), "{}", terminal.screen());

    // An editor.
    terminal.enter("vi /tmp/edited; echo vi''=$?");
    terminal.wait_for("/tmp/edited");
    terminal.wait_for("\u{1b}[");
    terminal.keys(&["i"]);
    terminal.enter("first line");
    terminal.text("second line");
    terminal.keys(&["Escape"]);
    terminal.enter(":wq");
    terminal.wait_for("vi=0");
    assert_eq!(sandbox.sh("cat /tmp/edited").ok().stdout_text(), "first line\nsecond line\n");

    terminal.enter("exit 11");
    terminal.wait_for("code=11");
    terminal.enter("stty -a | grep -c -w -e icanon -e echo");
    terminal.wait_for("\n");
    terminal.enter("stty -a | tr ' ;' '\\n' | grep -x -e icanon -e echo | tr '\\n' +");
    terminal.wait_for("icanon+echo+");
}

#[test]
fn a_paste_of_a_megabyte_arrives_whole_while_it_is_echoed() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("paste");
    // Lines, because a terminal takes no more than 4095 bytes without an end of line.
    let text: String = (0..12_500).map(|number| format!("{number:07} {}\n", "lorem ipsum dolor sit amet ".repeat(3).trim_end())).collect();
    assert!(text.len() > 1_000_000);
    std::fs::write(&file, &text).unwrap();
    let sum = belljar_testkit::sha256(text.as_bytes());
    let mut terminal = Terminal::open(&scene);
    terminal.enter(&format!("belljar shell {}; echo code=$?", sandbox.id));
    terminal.wait_for("user@");
    for preparation in ["true", "stty -echo"] {
        terminal.enter(&format!("{preparation}; echo re''ady; cat > /tmp/pasted; stty echo; sha256sum /tmp/pasted"));
        terminal.wait_for("ready");
        terminal.paste(&file);
        terminal.keys(&["C-d"]);
        terminal.wait_for(&sum);
    }
}

#[test]
fn a_shell_that_hangs_can_be_left_and_the_terminal_is_as_before() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let mut terminal = Terminal::open(&scene);
    let sane = |terminal: &mut Terminal| {
        terminal.enter("stty -a | tr ' ;' '\\n' | grep -x -e icanon -e echo | tr '\\n' +");
        terminal.wait_for("icanon+echo+");
    };
    terminal.enter(&format!("belljar shell {} -- sh -c 'stty -echo; echo sl''eeping; sleep 1000 # hung'; echo code=$?", sandbox.id));
    terminal.wait_for("sleeping");
    terminal.keys(&["Enter"]);
    terminal.keys(&["~", "."]);
    terminal.wait_for("code=129");
    sane(&mut terminal);
    assert_eq!(sandbox.sh("pgrep -f '[#] hung'").code, 1, "what ran was sent SIGHUP");

    terminal.enter(&format!(
        "sh -c 'echo $$ > /tmp/{0}; exec belljar shell {0} -- sh -c \"echo wa\"iting\"; sleep 1000\"'; echo code=$?",
        sandbox.id
    ));
    terminal.wait_for("waiting");
    let file = std::path::PathBuf::from(format!("/tmp/{}", sandbox.id));
    let pid = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("kill").args(["-TERM", pid.trim()]).status().unwrap().success());
    terminal.wait_for("code=143");
    sane(&mut terminal);
}
