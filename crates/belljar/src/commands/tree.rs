//! `belljar tree`: who came from whom, as a drawing.

use std::collections::{BTreeMap, BTreeSet};

use belljar_client::{ListSandboxes, ListSnapshots, SandboxView, SnapshotView};
use belljar_types::SandboxId;

use super::ls::live_states;
use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::{moments, screen, units};

/// Draw which sandboxes and snapshots came from which
///
/// Of one sandbox's whole family, ended ones too as long as they are remembered; or of all snapshots and all sandboxes that have not ended. With --json,
/// the sandboxes and snapshots, which name their origins.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  belljar tree\n  belljar tree sk3v9m2x8c7p4q6w5z2n")]
pub(crate) struct Arguments {
    /// Id of any sandbox of the family
    sandbox: Option<SandboxId>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(serde::Serialize)]
struct Forest {
    sandboxes: Vec<SandboxView>,
    snapshots: Vec<SnapshotView>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let asked = || CommandError::asked("draw the tree");
    let forest = match &arguments.sandbox {
        Some(sandbox) => {
            let tree = client.tree(sandbox).await.map_err(asked())?;
            Forest { sandboxes: tree.sandboxes, snapshots: tree.snapshots }
        }
        None => {
            let mut which = ListSandboxes { states: live_states(), oldest_first: true, limit: Some(1000), ..ListSandboxes::default() };
            let mut sandboxes = Vec::new();
            loop {
                let page = client.sandboxes(&which).await.map_err(asked())?;
                sandboxes.extend(page.sandboxes);
                which.cursor = page.next_cursor;
                if which.cursor.is_none() {
                    break;
                }
            }
            let mut which = ListSnapshots { limit: Some(1000), ..ListSnapshots::default() };
            let mut snapshots = Vec::new();
            loop {
                let page = client.snapshots(&which).await.map_err(asked())?;
                snapshots.extend(page.snapshots);
                which.cursor = page.next_cursor;
                if which.cursor.is_none() {
                    break;
                }
            }
            snapshots.reverse();
            Forest { sandboxes, snapshots }
        }
    };
    if arguments.remote.json {
        return Ok(screen::json(&forest)?);
    }
    let nodes: Vec<Node> = forest.snapshots.iter().map(of_snapshot).chain(forest.sandboxes.iter().map(of_sandbox)).collect();
    for line in draw(&nodes) {
        screen::line(&line)?;
    }
    Ok(())
}

/// One line of the drawing, and below which other it hangs; whoever is not there any more has nobody below.
struct Node {
    id: String,
    below: Vec<String>,
    text: String,
}

fn of_sandbox(sandbox: &SandboxView) -> Node {
    let below = sandbox.origin.as_ref().map(|origin| origin.snapshot.iter().cloned().chain([origin.sandbox.clone()]).collect());
    let text = format!("{} {} {}", sandbox.id, sandbox.state, screen::safe(&sandbox.template));
    Node { id: sandbox.id.to_string(), below: below.unwrap_or_default(), text }
}

fn of_snapshot(snapshot: &SnapshotView) -> Node {
    let name = snapshot.name.as_deref().map(|name| format!(" {}", screen::safe(name))).unwrap_or_default();
    let (age, size) = (moments::relative(&snapshot.created_at), units::size(snapshot.bytes));
    let text = format!("{}{name} ({}, {size}, {age})", screen::safe(&snapshot.id), screen::safe(&snapshot.kind));
    Node { id: snapshot.id.clone(), below: vec![snapshot.sandbox.clone()], text }
}

fn draw(nodes: &[Node]) -> Vec<String> {
    let known: BTreeSet<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    let mut children: BTreeMap<Option<&str>, Vec<&Node>> = BTreeMap::new();
    for node in nodes {
        let parent = node.below.iter().map(String::as_str).find(|parent| known.contains(parent));
        children.entry(parent).or_default().push(node);
    }
    let mut lines = Vec::new();
    // Lines still to be written, last first; a family is as deep as people fork, so no recursion.
    let mut waiting: Vec<(&Node, String, &str, &str)> = Vec::new();
    for root in children.get(&None).into_iter().flatten().rev() {
        waiting.push((root, String::new(), "", ""));
    }
    while let Some((node, indent, branch, rest)) = waiting.pop() {
        lines.push(format!("{indent}{branch}{}", node.text));
        let below = children.get(&Some(node.id.as_str())).map(Vec::as_slice).unwrap_or_default();
        for (index, child) in below.iter().enumerate().rev() {
            let (branch, next) = if index + 1 == below.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            waiting.push((child, format!("{indent}{rest}"), branch, next));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_hangs_together_and_orphans_stand_for_themselves() {
        let node = |id: &str, below: &[&str]| Node { id: id.into(), below: below.iter().map(|&b| b.into()).collect(), text: id.into() };
        let drawn = draw(&[
            node("snap", &["root"]),
            node("root", &[]),
            node("child", &["snap", "root"]),
            node("other", &["snap", "root"]),
            node("direct", &["root"]),
            node("orphan", &["gone"]),
        ]);
        assert_eq!(drawn, ["root", "├─ snap", "│  ├─ child", "│  └─ other", "└─ direct", "orphan"]);
    }
}
