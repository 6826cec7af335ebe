//! Java's list of whom to trust, a file of its own format. One entry of ours is added to it, or takes the place of the one from before; a list in
//! a format that is not understood here is replaced by one of the certificates that the other programs trust.
//!
//! The format (JKS): a magic number, a version, a count; for each entry its kind, its name, its time and a certificate; and a digest of all that
//! with a password, which is the same everywhere and protects nothing. Java takes it wherever it takes its newer format.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

/// Where the Javas of Debian, of Fedora and of the usual images look.
pub(super) const STORES: [&str; 3] =
    ["/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts", "/opt/java/openjdk/lib/security/cacerts"];

const MAGIC: u32 = 0xfeed_feed;
const VERSION: u32 = 2;
const TRUSTED: u32 = 2;
const KIND: &[u8] = b"X.509";
const ALIAS: &[u8] = b"belljar";
const DIGEST: usize = 20;
const PASSWORD: &str = "changeit";
const SALT: &[u8] = b"Mighty Aphrodite";

/// The list with this certificate in it.
pub(super) fn with(store: &[u8], bundle: &str, certificate: &str) -> Vec<u8> {
    let mut entries = entries(store).unwrap_or_else(|| {
        certificates(bundle).zip(1_u32..).map(|(der, number)| entry(format!("bundle-{number}").as_bytes(), &der)).collect()
    });
    entries.retain(|entry| !entry.get(4..).is_some_and(|rest| rest.starts_with(&named(ALIAS))));
    entries.extend(certificates(certificate).map(|der| entry(ALIAS, &der)));
    let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let mut list: Vec<u8> = [MAGIC, VERSION, count].iter().flat_map(|number| number.to_be_bytes()).collect();
    list.extend(entries.concat());
    let digest = digest(&list);
    list.extend(digest);
    list
}

/// The entries of a list as they stand; `None` unless it has nothing but certificates. It is the sandbox's file, and may hold anything.
fn entries(store: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut rest = store.get(..store.len().checked_sub(DIGEST)?)?;
    let header = [take_number(&mut rest)?, take_number(&mut rest)?];
    if header != [MAGIC, VERSION] {
        return None;
    }
    let count = take_number(&mut rest)?;
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let start = rest;
        if take_number(&mut rest)? != TRUSTED {
            return None;
        }
        take_text(&mut rest)?;
        take(&mut rest, 8)?;
        take_text(&mut rest)?;
        let length = usize::try_from(take_number(&mut rest)?).ok()?;
        take(&mut rest, length)?;
        entries.push(start.get(..start.len() - rest.len())?.to_vec());
    }
    (u32::try_from(entries.len()).ok()? == count).then_some(entries)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(rest, 4)?.try_into().ok()?))
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u16::from_be_bytes(take(rest, 2)?.try_into().ok()?);
    take(rest, usize::from(length))
}

fn named(text: &[u8]) -> Vec<u8> {
    [&u16::try_from(text.len()).unwrap_or_default().to_be_bytes(), text].concat()
}

fn entry(alias: &[u8], der: &[u8]) -> Vec<u8> {
    let length = u32::try_from(der.len()).unwrap_or_default();
    [&TRUSTED.to_be_bytes(), named(alias).as_slice(), &0_u64.to_be_bytes(), &named(KIND), &length.to_be_bytes(), der].concat()
}

/// The certificates in a text; what is none is passed over.
fn certificates(pem: &str) -> impl Iterator<Item = Vec<u8>> {
    let bodies = pem.split("-----BEGIN CERTIFICATE-----").skip(1).filter_map(|part| part.split_once("-----END CERTIFICATE-----"));
    bodies.filter_map(|(body, _)| STANDARD.decode(body.split_ascii_whitespace().collect::<String>()).ok())
}

fn digest(list: &[u8]) -> Vec<u8> {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    let password: Vec<u8> = PASSWORD.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for part in [password.as_slice(), SALT, list] {
        context.update(part);
    }
    context.finish().as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "-----BEGIN CERTIFICATE-----\nb3Vycw==\n-----END CERTIFICATE-----\n";
    const NEWER: &str = "-----BEGIN CERTIFICATE-----\nbmV3\nZXI=\n-----END CERTIFICATE-----\n";
    const BUNDLE: &str =
        "# one\n-----BEGIN CERTIFICATE-----\nb25l\n-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----";

    #[test]
    fn our_entry_is_added_and_replaced_and_the_others_stay() {
        let first = with(b"a format of tomorrow", BUNDLE, OURS);
        assert_eq!(entries(&first).unwrap(), [entry(b"bundle-1", b"one"), entry(ALIAS, b"ours")]);
        assert_eq!(entries(&with(&first, "", NEWER)).unwrap(), [entry(b"bundle-1", b"one"), entry(ALIAS, b"newer")]);
    }

    #[test]
    fn a_list_that_is_cut_or_changed_is_replaced() {
        let whole = with(&[], BUNDLE, OURS);
        for length in 0..whole.len() {
            let cut = whole.get(..length).unwrap_or_default();
            assert_eq!(with(cut, BUNDLE, OURS), whole, "{length}");
        }
        let mut other = whole.clone();
        other[15] = 1;
        assert_eq!(with(&other, BUNDLE, OURS), whole, "a private key is no business of ours");
    }
}
