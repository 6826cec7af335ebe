//! What can be told about the tools without a server.

use std::collections::BTreeSet;

use belljar_client::Connection;
use belljar_types::SandboxId;
use serde_json::{Value, json};

use super::*;
use crate::place::Place;

fn lodgings(place: Place) -> Lodgings {
    let connection = Connection { url: "http://127.0.0.1:1".to_owned(), key: None, certificate: None };
    Lodgings::new(belljar_client::Client::new(&connection).unwrap(), place)
}

async fn refused(place: Place, name: &str, arguments: Value) -> String {
    let lodgings = lodgings(place);
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    call(&lodgings, name, arguments).unwrap().await.unwrap_err().told()
}

fn anywhere() -> Place {
    Place::Made(Box::default())
}

#[test]
fn every_tool_says_what_it_does_and_what_it_takes() {
    let tools = all();
    let names: BTreeSet<_> = tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names.len(), tools.len());
    for tool in &tools {
        let description = tool.description.as_deref().unwrap_or_default();
        assert!(description.len() > 40, "{}: {description}", tool.name);
        assert!(!description.contains("  "), "{}: {description}", tool.name);
        assert_eq!(tool.input_schema["additionalProperties"], json!(false), "{}", tool.name);
        let arguments = tool.input_schema["properties"].as_object().unwrap();
        for (name, argument) in arguments {
            assert!(argument["description"].is_string(), "{} {name}", tool.name);
        }
        let here = lodgings(anywhere());
        assert!(call(&here, &tool.name, JsonObject::new()).is_some(), "{} is offered and not done", tool.name);
    }
    assert!(call(&lodgings(anywhere()), "sudo", JsonObject::new()).is_none());
}

#[tokio::test]
async fn wrong_arguments_are_named_before_anything_is_done() {
    for (name, arguments, told) in [
        ("run_command", json!({}), "missing field `command`"),
        ("run_command", json!({"command": "id", "cmd": 1}), "unknown field `cmd`"),
        ("run_command", json!({"command": 7}), "invalid type: integer `7`, expected a string"),
        ("read_file", json!({"path": ""}), "path"),
        ("read_file", json!({"path": "/a\0b"}), "NUL"),
        ("share_port", json!({"port": 0}), "port"),
        ("share_port", json!({"port": 70_000}), "70000"),
        ("restore_checkpoint", json!({}), "missing field `name`"),
    ] {
        let words = refused(anywhere(), name, arguments.clone()).await;
        assert!(words.contains(told), "{name} {arguments}: {words}");
    }
}

#[tokio::test]
async fn only_sandboxes_of_this_connection_are_touched() {
    let given = SandboxId::random();
    let strange = SandboxId::random();
    for place in [anywhere(), Place::Given(given.clone())] {
        for tool in ["run_command", "fork_sandbox", "end_sandbox", "sandbox_info"] {
            let arguments = match tool {
                "run_command" => json!({"command": "id", "sandbox": strange.as_str()}),
                _ => json!({"sandbox": strange.as_str()}),
            };
            let words = refused(place.clone(), tool, arguments).await;
            assert!(words.contains("is no sandbox of this connection"), "{tool}: {words}");
        }
    }
    let words = refused(Place::Given(given.clone()), "end_sandbox", json!({})).await;
    assert!(words.contains("was given"), "{words}");
    let words = refused(Place::Given(given.clone()), "end_sandbox", json!({ "sandbox": given.as_str() })).await;
    assert!(words.contains("was given"), "{words}");
}
