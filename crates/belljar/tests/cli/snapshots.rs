//! What is kept of sandboxes, from the command line: snapshots, forks, roll-backs, trees.

use crate::scene::Scene;

#[test]
fn a_sandbox_is_kept_copied_and_put_back() {
    let scene = Scene::open();
    let made = scene.run(["create", "--isolation", "container"]).ok();
    let id = made.stdout_text().trim().to_owned();
    scene.run(["exec", &id, "--", "sh", "-c", "echo before > ~/file"]).ok();
    let name = format!("cli-{id}");
    let snapshot = scene.run(["snapshot", "create", &id, "--name", &name, "--expires", "1h"]).ok().stdout_text().trim().to_owned();
    assert_eq!(scene.run(["snapshot", "ls", "-q", "--sandbox", &id]).ok().stdout_text().trim(), snapshot);
    assert!(scene.run(["snapshot", "ls", "--name", &name]).ok().stdout_text().contains("filesystem"));
    let shown = scene.run(["snapshot", "show", "--json", &name]).ok().json();
    assert_eq!(shown["id"], snapshot.as_str());
    assert!(scene.run(["snapshot", "show", &snapshot]).ok().stdout_text().contains("stood still"));

    scene.run(["exec", &id, "--", "sh", "-c", "echo after > ~/file"]).ok();
    let forks = scene.run(["fork", &id, "--count", "2", "--all-or-nothing", "--env", "A=1"]).ok().stdout_text().to_owned();
    assert_eq!(forks.lines().count(), 2);
    for fork in forks.lines() {
        assert_eq!(scene.run(["exec", fork, "--", "sh", "-c", "cat ~/file; echo $A"]).ok().stdout_text(), "after\n1\n");
    }
    let fork = scene.run(["fork", "--snapshot", &name, "--meta", "branch=b"]).ok().stdout_text().trim().to_owned();
    assert_eq!(scene.run(["exec", &fork, "--", "sh", "-c", "cat ~/file"]).ok().stdout_text(), "before\n");
    let from = scene.run(["create", "--snapshot", &name]).ok().stdout_text().trim().to_owned();
    assert!(scene.run(["show", &from]).ok().stdout_text().contains("copy of"));

    scene.run(["rollback", &id, &name]).ok();
    assert_eq!(scene.run(["exec", &id, "--", "sh", "-c", "cat ~/file"]).ok().stdout_text(), "before\n");
    let tree = scene.run(["tree", &fork]).ok().stdout_text().to_owned();
    let lines: Vec<&str> = tree.lines().collect();
    assert!(lines[0].starts_with(&format!("{id} running")), "{tree}");
    assert!(lines[1].starts_with(&format!("├─ {snapshot} {name} (filesystem")), "{tree}");
    assert!(lines[2].starts_with(&format!("│  ├─ {fork} running")), "{tree}");
    assert_eq!(lines.len(), 6, "{tree}");
    assert!(scene.run(["tree"]).ok().stdout_text().contains(&fork));

    scene.run(["snapshot", "rm", &name]).ok();
    let gone = scene.run(["snapshot", "show", &name]);
    assert_eq!(gone.code, 1);
    assert!(gone.stderr.contains("there is no snapshot"), "{}", gone.stderr);
    for sandbox in forks.lines().chain([id.as_str(), &fork, &from]) {
        scene.run(["kill", sandbox]).ok();
    }
}
