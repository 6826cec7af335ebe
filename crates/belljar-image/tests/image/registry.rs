//! Pulling from a registry that speaks the protocol over a socket: tokens, redirects, indexes, failures, lies.

use std::collections::BTreeMap;
use std::error::Error;

use belljar_image::{ImageError, OciError, PullOptions, RegistryCredentials, RegistryError, Silent};
use belljar_types::{Secret, Template};
use serde_json::json;

use crate::images::{Image, sha256};
use crate::oci::{Scene, assert_is_sample};
use crate::registry_server::{Behaviour, Registry};

/// The sample image behind an index for several platforms.
pub(crate) fn content() -> BTreeMap<String, Vec<u8>> {
    let (blobs, manifest) = Image::sample().blobs();
    let (foreign_blobs, foreign) = Image { architecture: "s390x", ..Image::sample() }.blobs();
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let index = json!({"schemaVersion": 2, "manifests": [
        {"mediaType": kind, "digest": foreign, "size": foreign_blobs[&foreign].len(), "platform": {"os": "linux", "architecture": "s390x"}},
        {"mediaType": kind, "digest": manifest, "size": blobs[&manifest].len(), "platform": {"os": "linux", "architecture": "amd64"}},
        {"mediaType": kind, "digest": foreign, "size": 1, "platform": {"os": "unknown", "architecture": "unknown"}},
    ]})
    .to_string()
    .into_bytes();
    let mut content = BTreeMap::new();
    for (digest, bytes) in blobs {
        content.insert(format!("manifests/{digest}"), bytes.clone());
        content.insert(format!("blobs/{digest}"), bytes);
    }
    content.insert(format!("manifests/{}", sha256(&index)), index.clone());
    content.insert("manifests/v1".into(), index);
    content
}

fn pull(scene: &Scene, registry: &Registry, version: &str, options: &PullOptions) -> Result<Template, ImageError> {
    let reference = format!("{}/team/app{version}", registry.address).parse().unwrap();
    scene.store.pull("pulled".parse().unwrap(), &reference, options, &Silent)
}

#[test]
fn an_image_is_pulled_with_a_token_through_an_index_and_redirects() {
    let scene = Scene::new();
    let registry = Registry::start(Behaviour {
        content: content(),
        token_for: Some(None),
        redirect_blobs_to: Some(String::new()),
        ..Behaviour::default()
    });
    let template = pull(&scene, &registry, ":v1", &PullOptions::default()).unwrap();
    assert_is_sample(&scene.store, &template);
    assert_eq!(registry.saw("/token?"), 1, "one token is enough");
    assert!(template.origin.starts_with(&format!("oci {}/team/app:v1 sha256:", registry.address)), "{}", template.origin);
    let before = registry.saw("blobs/");
    let again = pull(&scene, &registry, ":v1", &PullOptions::default()).unwrap();
    assert_eq!(again.layers, template.layers);
    // Each blob is two requests here, for the redirect; only the configuration is asked for again.
    assert_eq!(registry.saw("blobs/") - before, 2, "layers that are there are not pulled again");
}

#[test]
fn credentials_are_shown_to_the_token_server_and_to_nobody_else() {
    let scene = Scene::new();
    let elsewhere = Registry::start(Behaviour { content: content(), ..Behaviour::default() });
    let basic = "bWU6c2VjcmV0"; // me:secret
    let registry = Registry::start(Behaviour {
        content: content(),
        token_for: Some(Some(basic.into())),
        redirect_blobs_to: Some(format!("http://{}", elsewhere.address)),
        ..Behaviour::default()
    });
    let error = pull(&scene, &registry, ":v1", &PullOptions::default()).unwrap_err();
    assert!(matches!(error, ImageError::Registry(RegistryError::Denied { .. })), "{error:?}");
    scene.assert_no_template();
    let credentials = RegistryCredentials { username: "me".into(), password: Secret::new("secret".into()) };
    let options = PullOptions { credentials: Some(credentials), insecure: false };
    assert!(!format!("{options:?}").contains("secret"));
    let template = pull(&scene, &registry, ":v1", &options).unwrap();
    assert_is_sample(&scene.store, &template);
    assert!(elsewhere.saw("/elsewhere/blobs/") > 0);
    let requests = elsewhere.requests.lock().unwrap();
    assert!(requests.iter().all(|request| request.ends_with('|')), "the other host saw a token: {requests:?}");
    assert_eq!(registry.saw("/v2/team/app/manifests/v1|Basic"), 0);
}

#[test]
fn a_digest_leaves_nothing_to_trust() {
    let scene = Scene::new();
    let mut content = content();
    let index = sha256(&content["manifests/v1"]);
    let registry = Registry::start(Behaviour { content: content.clone(), ..Behaviour::default() });
    let template = pull(&scene, &registry, &format!(":moved@{index}"), &PullOptions::default()).unwrap();
    assert_is_sample(&scene.store, &template);
    content.insert(format!("manifests/{index}"), content["manifests/v1"].iter().copied().chain([b' ']).collect());
    let lying = Registry::start(Behaviour { content, ..Behaviour::default() });
    let error = pull(&Scene::new(), &lying, &format!("@{index}"), &PullOptions::default()).unwrap_err();
    assert!(matches!(error, ImageError::Registry(RegistryError::Content { .. })), "{error:?}");
}

#[test]
fn a_registry_that_gives_other_bytes_is_found_out() {
    let scene = Scene::new();
    let (blobs, manifest) = Image::sample().blobs();
    let manifest: serde_json::Value = serde_json::from_slice(&blobs[&manifest]).unwrap();
    let layer = manifest["layers"][1]["digest"].as_str().unwrap();
    let mut content = content();
    content.get_mut(&format!("blobs/{layer}")).unwrap()[600] ^= 1;
    let registry = Registry::start(Behaviour { content: content.clone(), ..Behaviour::default() });
    let error = pull(&scene, &registry, ":v1", &PullOptions::default()).unwrap_err();
    assert!(matches!(error, ImageError::Registry(RegistryError::Content { .. })), "{error:?}");
    assert!(error.to_string().contains(layer), "{error}");
    scene.assert_no_template();
    content.get_mut(&format!("blobs/{layer}")).unwrap().extend(vec![0; 1 << 20]);
    let longer = Registry::start(Behaviour { content, ..Behaviour::default() });
    let error = pull(&scene, &longer, ":v1", &PullOptions::default()).unwrap_err();
    assert!(matches!(error, ImageError::Registry(RegistryError::Content { .. })), "{error:?}");
}

#[test]
fn hiccups_are_survived() {
    let scene = Scene::new();
    let registry = Registry::start(Behaviour { content: content(), cut_off: 2, unavailable: 2, ..Behaviour::default() });
    let template = pull(&scene, &registry, ":v1", &PullOptions::default()).unwrap();
    assert_is_sample(&scene.store, &template);
}

#[test]
fn what_is_not_there_is_said() {
    let scene = Scene::new();
    let registry = Registry::start(Behaviour { content: content(), ..Behaviour::default() });
    let error = pull(&scene, &registry, ":v9", &PullOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("registry {} has no manifest v9 of team/app", registry.address));
    let mut content = content();
    content.insert("manifests/v1".into(), b"{\"manifests\": \"nonsense\"}".to_vec());
    let broken = Registry::start(Behaviour { content, ..Behaviour::default() });
    let error = pull(&scene, &broken, ":v1", &PullOptions::default()).unwrap_err();
    assert!(matches!(error, ImageError::Oci(OciError::Parse { .. })), "{error:?}");
    scene.assert_no_template();
}

#[test]
fn a_registry_elsewhere_is_not_spoken_to_in_the_clear() {
    // Nothing answers TLS there; that it was tried shows in the failure, and the plain-text server sees no request.
    let registry = Registry::start(Behaviour { content: content(), ..Behaviour::default() });
    let port = registry.address.rsplit(':').next().unwrap();
    let reference = format!("0.0.0.0:{port}/team/app:v1").parse().unwrap();
    let pull = |options: &PullOptions| Scene::new().store.pull("p".parse().unwrap(), &reference, options, &Silent);
    let error = pull(&PullOptions::default()).unwrap_err();
    assert!(matches!(error, ImageError::Registry(RegistryError::Transport { .. })), "{error:?} {:?}", error.source());
    assert_eq!(registry.saw("/v2/"), 0);
    pull(&PullOptions { insecure: true, credentials: None }).unwrap();
    assert!(registry.saw("/v2/") > 0);
}
