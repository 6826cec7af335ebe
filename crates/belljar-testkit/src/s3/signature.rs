//! AWS Signature Version 4, from the side that checks it.

use axum::http::request::Parts;
use belljar_types::hex;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::answers::Refusal;
use super::{ACCESS_KEY, REGION, SECRET_KEY};

/// The digest that the body must have, if the signature is right.
pub(super) fn check(head: &Parts) -> Result<String, Refusal> {
    let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let authorization = text("authorization").and_then(|value| value.strip_prefix("AWS4-HMAC-SHA256 ")).ok_or(Refusal::UNSIGNED)?;
    let field = |name: &str| authorization.split(',').find_map(|field| field.trim().strip_prefix(name)).ok_or(Refusal::UNSIGNED);
    let (credential, signed, signature) = (field("Credential=")?, field("SignedHeaders=")?, field("Signature=")?);
    let (time, payload) = (text("x-amz-date").ok_or(Refusal::UNSIGNED)?, text("x-amz-content-sha256").ok_or(Refusal::UNSIGNED)?);
    let day = time.get(..8).ok_or(Refusal::UNSIGNED)?;
    let scope = format!("{day}/{REGION}/s3/aws4_request");
    // What is not under the signature could have been changed on the way.
    let must_be_signed = ["host", "x-amz-date", "x-amz-content-sha256"];
    if credential != format!("{ACCESS_KEY}/{scope}") || must_be_signed.iter().any(|name| !signed.split(';').any(|other| other == *name)) {
        return Err(Refusal::UNSIGNED);
    }
    let mut request = format!("{}\n{}\n{}\n", head.method, head.uri.path(), query(head.uri.query().unwrap_or_default()));
    for name in signed.split(';') {
        let value = text(name).ok_or(Refusal::UNSIGNED)?;
        request.push_str(&format!("{name}:{}\n", value.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    request.push_str(&format!("\n{signed}\n{payload}"));
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(request.as_bytes())));
    let mut key = format!("AWS4{SECRET_KEY}").into_bytes();
    for step in [day, REGION, "s3", "aws4_request"] {
        key = sign(&key, step.as_bytes());
    }
    if hex(&sign(&key, to_sign.as_bytes())) != signature {
        return Err(Refusal::WRONG_SIGNATURE);
    }
    Ok(payload.to_owned())
}

fn query(text: &str) -> String {
    let mut pairs: Vec<(&str, &str)> =
        text.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
    pairs.sort_unstable();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn sign(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("any length is a key"));
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}
