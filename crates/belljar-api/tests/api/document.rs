//! The OpenAPI document: current, and complete.

use belljar_testkit::block_on;
use serde_json::Value;

use crate::scene::Scene;

#[test]
fn the_document_in_the_repository_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == belljar_api::openapi(),
        "docs/reference/openapi.json is not what the routes say: renew it with `cargo run -p belljar-api --example openapi > docs/reference/openapi.json`"
    );
}

#[test]
fn the_document_is_served_and_whole() {
    block_on(async {
        let served = Scene::get().await.ours.stranger().get("/v1/openapi.json").await.ok();
        let document: Value = serde_json::from_str(&belljar_api::openapi()).unwrap();
        assert_eq!(served, document);
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
        let mut names = std::collections::BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap().iter().filter(|(_, operation)| operation["responses"].is_object()) {
                let at = format!("{method} {path}");
                for part in ["summary", "operationId", "tags"] {
                    assert!(!operation[part].is_null(), "{at} has no {part}");
                }
                assert!(names.insert(operation["operationId"].to_string()), "{at}: the operation's name is taken");
                assert!(operation["responses"]["400"].is_object(), "{at} says nothing of problems");
                let named: Vec<&str> =
                    operation["parameters"].as_array().into_iter().flatten().map(|parameter| parameter["name"].as_str().unwrap()).collect();
                for variable in path.split('{').skip(1).map(|rest| rest.split('}').next().unwrap()) {
                    assert!(named.contains(&variable), "{at} does not describe {variable}");
                }
            }
        }
        check_references(&document, &document);
    });
}

fn check_references(document: &Value, value: &Value) {
    if let Some(reference) = value["$ref"].as_str() {
        let target = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
        assert!(target.is_some(), "{reference} refers to nothing");
    }
    match value {
        Value::Object(fields) => fields.values().for_each(|field| check_references(document, field)),
        Value::Array(items) => items.iter().for_each(|item| check_references(document, item)),
        _ => {}
    }
}
