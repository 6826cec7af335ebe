//! What E2B's clients asked for that Belljar has no field for. It is kept with the sandbox's metadata, so that it lives as long as the sandbox
//! does; E2B's clients are not shown it and cannot set it.

use std::collections::BTreeMap;

/// The metadata's name.
const NAME: &str = "belljar.e2b";

/// How a sandbox may be reached. One without marks was made by another front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Its daemon wants a token.
    pub(crate) secure: bool,
    /// Its programs' ports want none.
    pub(crate) public_ports: bool,
    /// What its programs are told as their host; `${PORT}` stands for the port.
    pub(crate) program_host: Option<String>,
}

/// The end of the mark that has the host.
const HOST: &str = "host=";

impl Marks {
    /// Puts them into the metadata of a new sandbox.
    pub(crate) fn put(&self, metadata: &mut BTreeMap<String, String>) {
        let word = |set, yes: &'static str, no: &'static str| if set { yes } else { no };
        let mut text = format!("{} {}", word(self.secure, "secure", "insecure"), word(self.public_ports, "public", "private"));
        if let Some(host) = &self.program_host {
            text.push_str(&format!(" {HOST}{host}"));
        }
        metadata.insert(NAME.to_owned(), text);
    }

    /// Of a sandbox. One that another front made is closed to everybody without a token.
    pub(crate) fn of(metadata: &BTreeMap<String, String>) -> Self {
        let text = metadata.get(NAME).map_or("", String::as_str);
        let has = |word: &str| text.split(' ').any(|part| part == word);
        let program_host = text.split(' ').find_map(|part| part.strip_prefix(HOST)).map(str::to_owned);
        Self { secure: !has("insecure"), public_ports: has("public"), program_host }
    }

    /// Whether E2B's clients made it.
    pub(crate) fn are_in(metadata: &BTreeMap<String, String>) -> bool {
        metadata.contains_key(NAME)
    }

    /// Metadata as E2B's clients know it.
    pub(crate) fn without(metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        metadata.iter().filter(|(name, _)| *name != NAME).map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_the_metadata_and_a_client_cannot_forge_them() {
        for (secure, public_ports) in [(true, true), (true, false), (false, true), (false, false)] {
            let marks = Marks { secure, public_ports, program_host: secure.then(|| "x.example:${PORT}".to_owned()) };
            let mut metadata = BTreeMap::from([(NAME.to_owned(), "insecure public".to_owned()), ("a".to_owned(), "b".to_owned())]);
            marks.put(&mut metadata);
            assert_eq!(Marks::of(&metadata), marks);
            assert_eq!(Marks::without(&metadata), BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        }
        assert_eq!(Marks::of(&BTreeMap::new()), Marks { secure: true, public_ports: false, program_host: None });
    }
}
