//! Digests as hexadecimal text: what a client chose freely is stored as one, so that its length and its bytes are no concern of an index.

use std::collections::BTreeMap;

use belljar_types::hex;
use sha2::{Digest, Sha256};

/// Of one text.
pub(crate) fn of(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Of a key and its value. The length in front keeps `a` + `bc` and `ab` + `c` apart.
pub(crate) fn pair(key: &str, value: &str) -> String {
    let mut digest = Sha256::new();
    digest.update((key.len() as u64).to_be_bytes());
    digest.update(key.as_bytes());
    digest.update(value.as_bytes());
    hex(&digest.finalize())
}

/// Of everything in `metadata`, and of each pair in it.
pub(crate) fn metadata(metadata: &BTreeMap<String, String>) -> (String, Vec<String>) {
    let pairs: Vec<String> = metadata.iter().map(|(key, value)| pair(key, value)).collect();
    (of(&pairs.concat()), pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_tell_apart_what_differs_only_in_where_it_is_cut() {
        assert_eq!(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_ne!(pair("a", "bc"), pair("ab", "c"));
        assert_ne!(pair("a", ""), pair("", "a"));
    }
}
