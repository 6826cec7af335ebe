//! A server that dies under a command: the command goes on, and so does whoever watches it, at the byte where it was.

use std::io::Write;

use crate::scene::Scene;

#[test]
fn a_command_outlives_the_server_byte_for_byte() {
    let scene = Scene::alone();
    let sandbox = scene.sandbox();
    let script = "seq 1 50000; read line; echo $line; seq 1 200000; cat | sha256sum; exit 5";
    let mut running = sandbox.start(&["-i"], script);
    assert_eq!(running.line(), "1");
    scene.restart_server();
    let mut stdin = running.child.stdin.take().unwrap();
    stdin.write_all(b"and on\n").unwrap();
    for number in 2..=50_000 {
        assert_eq!(running.line(), number.to_string());
    }
    assert_eq!(running.line(), "and on");
    assert_eq!(running.line(), "1");
    scene.restart_server();
    let input = belljar_testkit::pattern(3 << 20);
    let sum = belljar_testkit::sha256(&input);
    // Nothing reads it before all the output was read here.
    let writing = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    scene.restart_server();
    for number in 2..=200_000 {
        assert_eq!(running.line(), number.to_string());
    }
    writing.join().unwrap();
    assert_eq!(running.line(), format!("{sum}  -"));
    assert_eq!(running.code(), 5);
}
