//! What Daytona's clients asked for that Belljar has no field for. It is kept with the sandbox's metadata, so that it lives as long as the sandbox does;
//! labels are the rest of the metadata, and clients cannot set what begins with our own word.

use std::collections::BTreeMap;

use belljar_types::UserName;

use crate::errors::ApiError;

/// Metadata that is no label begins with this.
const OURS: &str = "belljar.";
const MARKS: &str = "belljar.daytona";
/// A field of its own, so that the store can look for it.
const NAME: &str = "belljar.daytona.name";
const LONGEST_NAME: usize = 128;

/// How a sandbox was asked to be. One without marks was made by another front.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Marks {
    /// Its programs' ports want no token.
    pub(crate) public: bool,
    /// Who runs its processes, if that is not the template's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<UserName>,
    /// Where the client wanted it to be; there is one place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    /// Minutes. What is stopped here is on disk alone, so there is nothing further to do after them.
    pub(crate) auto_archive: u64,
    /// What may go out, as it was asked for.
    pub(crate) block_all: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allow_list: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) domains: Option<String>,
    /// How often the key of its links to files was changed.
    pub(crate) links: u32,
}

impl Marks {
    /// Puts them into a sandbox's metadata.
    pub(crate) fn put(&self, metadata: &mut BTreeMap<String, String>) {
        // Text, numbers and booleans: this is always JSON.
        metadata.insert(MARKS.to_owned(), serde_json::to_string(self).unwrap_or_default());
    }

    /// Of a sandbox; nothing if Daytona's clients did not make it.
    pub(crate) fn of(metadata: &BTreeMap<String, String>) -> Option<Self> {
        metadata.get(MARKS).map(|text| serde_json::from_str(text).unwrap_or_default())
    }
}

/// What is said about a sandbox, as clients know it.
pub(crate) fn labels(metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    metadata.iter().filter(|(name, _)| !name.starts_with(OURS)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Refuses labels that would be taken for our own words.
pub(crate) fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), ApiError> {
    match labels.keys().find(|name| name.starts_with(OURS)) {
        Some(name) => Err(belljar_types::Invalid::new("labels", format!("names that do not begin with {OURS}"), name).into()),
        None => Ok(()),
    }
}

/// Gives a sandbox its name.
pub(crate) fn named(name: &str, metadata: &mut BTreeMap<String, String>) -> Result<(), ApiError> {
    let fits = (1..=LONGEST_NAME).contains(&name.len()) && !name.chars().any(char::is_control);
    if !fits {
        return Err(belljar_types::Invalid::new("name", format!("1 to {LONGEST_NAME} bytes of text"), name).into());
    }
    metadata.insert(NAME.to_owned(), name.to_owned());
    Ok(())
}

/// A sandbox's name, if it was given one.
pub(crate) fn name_of(metadata: &BTreeMap<String, String>) -> Option<&str> {
    metadata.get(NAME).map(String::as_str)
}

/// What the store looks for to find a sandbox by its name.
pub(crate) fn name_filter(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(NAME.to_owned(), name.to_owned())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_the_metadata_and_are_no_labels() {
        let marks = Marks { public: true, user: Some("root".parse().unwrap()), auto_archive: 60, ..Marks::default() };
        let mut metadata = BTreeMap::from([("a".to_owned(), "b".to_owned()), ("belljar.e2b".to_owned(), "secure".to_owned())]);
        assert_eq!(Marks::of(&metadata), None, "another front's");
        marks.put(&mut metadata);
        named("my sandbox", &mut metadata).unwrap();
        assert_eq!((Marks::of(&metadata), name_of(&metadata)), (Some(marks), Some("my sandbox")));
        assert_eq!(labels(&metadata), BTreeMap::from([("a".to_owned(), "b".to_owned())]));
    }

    #[test]
    fn nobody_can_forge_marks_or_have_an_odd_name() {
        for (name, good) in [("a", true), ("belljar.daytona", false), ("belljar.x", false), ("xbelljar.", true)] {
            assert_eq!(check_labels(&BTreeMap::from([(name.to_owned(), String::new())])).is_ok(), good, "{name}");
        }
        for name in ["", "a\nb", &"x".repeat(129)] {
            assert!(named(name, &mut BTreeMap::new()).is_err(), "{name:?}");
        }
    }
}
