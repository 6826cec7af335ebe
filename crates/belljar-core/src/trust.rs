//! Making programs inside trust whoever reads their TLS: the certificate goes through the agent into the bundle that most of them use, and
//! variables point the others to it. It is public, is good for the hosts of the policy and nobody else, and is replaced at every run.

mod java;

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_policy::Policy;
use belljar_ports::{Guest, GuestError};
use belljar_types::{ByteRange, GuestPath, UserName, WriteOptions};
use bytes::Bytes;
use futures_util::StreamExt;

const BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
const ALONE: &str = "/etc/ssl/certs/belljar.pem";
const BEGIN: &str = "# belljar: begin\n";
const END: &str = "# belljar: end\n";
const LARGEST: usize = 8 << 20;
/// Programs that bring certificates of their own, and how each is told of others.
const VARIABLES: [(&str, &str); 8] = [
    ("SSL_CERT_FILE", BUNDLE),
    ("REQUESTS_CA_BUNDLE", BUNDLE),
    ("CURL_CA_BUNDLE", BUNDLE),
    ("GIT_SSL_CAINFO", BUNDLE),
    ("CARGO_HTTP_CAINFO", BUNDLE),
    ("PIP_CERT", BUNDLE),
    ("AWS_CA_BUNDLE", BUNDLE),
    ("NODE_EXTRA_CA_CERTS", ALONE),
];

/// What processes are told by variables: where certificates are, and placeholders for secrets. What the caller set stays.
pub(crate) fn variables(policy: &Policy, mut env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let reads =
        policy.network.as_ref().is_some_and(|network| network.allow.iter().chain(&network.deny).any(belljar_policy::Rule::reads_requests));
    let secrets = policy.secrets.as_deref().unwrap_or_default();
    let sets = policy.headers.as_ref().is_some_and(|headers| !headers.is_empty());
    if reads || sets || !secrets.is_empty() {
        for (name, value) in VARIABLES {
            env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    for secret in secrets {
        if let Some(variable) = &secret.variable {
            env.entry(variable.clone()).or_insert_with(|| format!("belljar-placeholder-{}", secret.secret));
        }
    }
    env
}

/// Puts the certificate where it is looked for; one from before is replaced.
pub(crate) async fn install(guest: &Arc<dyn Guest>, certificate: &str) -> Result<(), GuestError> {
    let root: UserName = "root".parse()?;
    let bundle = GuestPath::new(BUNDLE)?;
    let known = match guest.read_file(&bundle, ByteRange::default(), Some(&root)).await {
        Ok(content) => String::from_utf8(collect(content.bytes).await?).unwrap_or_default(),
        // An image without certificates.
        Err(GuestError::Refused { .. }) => String::new(),
        Err(error) => return Err(error),
    };
    let others = match (known.split_once(BEGIN), known.split_once(END)) {
        (Some((before, _)), Some((_, after))) => format!("{before}{after}"),
        _ => known,
    };
    write(guest, &bundle, &root, format!("{others}{BEGIN}{certificate}{END}").into()).await?;
    write(guest, &GuestPath::new(ALONE)?, &root, certificate.to_owned().into()).await?;
    for store in java::STORES {
        let store = GuestPath::new(store)?;
        match guest.read_file(&store, ByteRange::default(), Some(&root)).await {
            Ok(content) => {
                let list = java::with(&collect(content.bytes).await?, &others, certificate);
                write(guest, &store, &root, list.into()).await?;
            }
            // No Java that looks there.
            Err(GuestError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn collect(mut bytes: belljar_ports::ByteStream) -> Result<Vec<u8>, GuestError> {
    let mut all = Vec::new();
    while let Some(piece) = bytes.next().await {
        all.extend_from_slice(&piece?);
        // Nobody's bundle is that long; the sandbox's own files are its own business.
        if all.len() > LARGEST {
            return Ok(Vec::new());
        }
    }
    Ok(all)
}

async fn write(guest: &Arc<dyn Guest>, path: &GuestPath, root: &UserName, content: Bytes) -> Result<(), GuestError> {
    let options = WriteOptions { user: Some(root.clone()), mode: Some(0o644), make_parents: true, ..WriteOptions::default() };
    let content = futures_util::stream::once(std::future::ready(Ok(content)));
    guest.write_file(path, &options, Box::pin(content)).await.map(drop)
}
