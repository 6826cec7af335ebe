//! Documents that come with the program. None names a host: which registries there are is the operator's to say.

use crate::{Format, Policy, PolicyError, parse};

/// Their names and texts; the first is what a sandbox has when nobody says otherwise.
pub const PROFILES: [(&str, &str); 3] = [
    ("offline", include_str!("../profiles/offline.toml")),
    ("packages", include_str!("../profiles/packages.toml")),
    ("open", include_str!("../profiles/open.toml")),
];

/// A profile by its name.
pub fn profile(name: &str) -> Result<Policy, PolicyError> {
    match PROFILES.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => parse(text, Format::Toml),
        None => {
            let known = PROFILES.map(|(known, _)| known).join(", ");
            Err(PolicyError::NoProfile { name: belljar_types::escape_untrusted(name.as_bytes()), known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stance;

    #[test]
    fn every_profile_can_be_read_and_offline_has_no_way_out() {
        for (name, _) in PROFILES {
            assert_eq!(profile(name).unwrap().name.as_deref(), Some(name));
        }
        assert!(!profile("offline").unwrap().has_network());
        assert_eq!(profile("open").unwrap().network.unwrap().default, Stance::Allow);
        assert!(profile("opne").unwrap_err().to_string().contains("offline, packages, open"));
    }

    #[test]
    fn the_examples_of_the_guide_can_be_read() {
        parse(include_str!("../../../docs/examples/policies/coding-agent.toml"), Format::Toml).unwrap();
        parse(include_str!("../../../docs/examples/policies/data-analysis.yaml"), Format::Yaml).unwrap();
    }
}
