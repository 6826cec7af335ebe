//! Where Debian packages come from: wherever this machine's own apt gets them. The project names no host; an operator with a mirror has
//! told apt about it already.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The lines for `suite` in apt's one-line form, from all of apt's configuration under `apt` (`/etc/apt`).
///
/// Only sources signed by Debian's own keyring (or by apt's default ones) are taken: a third party's would need its key inside.
pub(super) fn for_suite(apt: &Path, suite: &str) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    for file in files(apt)? {
        let text = fs::read_to_string(&file)?;
        if file.extension().is_some_and(|extension| extension == "sources") {
            lines.extend(text.split("\n\n").flat_map(|stanza| from_stanza(stanza, suite)));
        } else {
            lines.extend(text.lines().filter_map(|line| from_line(line, suite)));
        }
    }
    Ok(lines)
}

fn files(apt: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = Some(apt.join("sources.list")).filter(|file| file.exists()).into_iter().collect();
    let mut parts = match fs::read_dir(apt.join("sources.list.d")) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    parts.retain(|path| path.extension().is_some_and(|extension| extension == "list" || extension == "sources"));
    parts.sort_unstable();
    files.append(&mut parts);
    Ok(files)
}

fn wanted(candidate: &str, suite: &str) -> bool {
    candidate.strip_prefix(suite).is_some_and(|rest| matches!(rest, "" | "-updates" | "-security"))
}

fn by_debian(signed_by: &str) -> bool {
    signed_by.rsplit('/').next().is_some_and(|file| file.starts_with("debian-archive-keyring"))
}

fn from_line(line: &str, suite: &str) -> Option<String> {
    let rest = line.trim().strip_prefix("deb")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let candidate = rest.split_whitespace().nth(1)?;
    let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
    (wanted(candidate, suite) && signed_by.is_none_or(by_debian)).then(|| line.trim().to_owned())
}

fn from_stanza(stanza: &str, suite: &str) -> Vec<String> {
    let field = |name: &str| {
        let mut lines = stanza
            .lines()
            .skip_while(|line| !line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name) && !key.starts_with('#')));
        let first = lines.next()?.split_once(':')?.1.to_owned();
        let more = lines.take_while(|line| line.starts_with([' ', '\t', '#'])).filter(|line| !line.starts_with('#'));
        Some(more.fold(first, |value, line| value + " " + line))
    };
    let words = |name: &str| field(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let signed_by = words("Signed-By");
    let disabled = words("Enabled").first().is_some_and(|value| value.eq_ignore_ascii_case("no"));
    if disabled || !words("Types").iter().any(|kind| kind == "deb") || !signed_by.iter().all(|key| by_debian(key)) {
        return Vec::new();
    }
    let options = signed_by.first().map_or_else(String::new, |key| format!("[signed-by={key}] "));
    let components = words("Components").join(" ");
    let suites = words("Suites");
    let suites: Vec<&String> = suites.iter().filter(|candidate| wanted(candidate, suite)).collect();
    let line = |uri: &String, suite: &String| format!("deb {options}{uri} {suite} {components}");
    words("URIs").iter().flat_map(|uri| suites.iter().map(move |suite| line(uri, suite))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_strangers_left_out() {
        let apt = tempfile::tempdir().unwrap();
        let parts = apt.path().join("sources.list.d");
        fs::create_dir(&parts).unwrap();
        fs::write(
            apt.path().join("sources.list"),
            "# deb http://commented.invalid bookworm main\ndeb http://a.invalid bookworm main\ndeb-src http://a.invalid bookworm main\n\
             deb [arch=amd64 signed-by=/k/other.gpg] http://stranger.invalid bookworm stable\ndeb http://a.invalid trixie main\n",
        )
        .unwrap();
        fs::write(
            parts.join("debian.sources"),
            "Types: deb\n# a comment\nURIs: http://b.invalid/debian\nSuites: bookworm bookworm-updates bookworm-backports\nComponents: main\n\
             Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\nTypes: deb\nURIs: http://c.invalid\nSuites: bookworm\n\
             Components: main\nEnabled: no\n\nTypes: deb\nURIs: http://d.invalid\nSuites: bookworm\nComponents: x\nSigned-By:\n -----BEGIN\n",
        )
        .unwrap();
        let lines = for_suite(apt.path(), "bookworm").unwrap();
        let signed = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://b.invalid/debian";
        assert_eq!(
            lines,
            ["deb http://a.invalid bookworm main".to_owned(), format!("{signed} bookworm main"), format!("{signed} bookworm-updates main")]
        );
    }
}
