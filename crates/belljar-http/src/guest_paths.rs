//! Paths inside a sandbox, on paper: nothing is asked of the sandbox, and no path of the host is ever made of one.

/// The shortest path that means the same, links apart. Absolute paths stay as they were asked for.
pub fn clean_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The last part of a path.
pub fn base_name(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { "/" } else { trimmed.rsplit('/').next().unwrap_or(trimmed) }
}

/// Where a link at `link` that says `target` points to.
pub fn resolve_link(link: &str, target: &str) -> String {
    if target.starts_with('/') {
        return clean_path(target);
    }
    let parent = link.trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent);
    clean_path(&format!("{parent}/{target}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_on_paper() {
        assert_eq!(resolve_link("/a/l", "../b"), "/b");
        assert_eq!(resolve_link("/a/l", "/c/./d"), "/c/d");
        assert_eq!(resolve_link("/l", "x"), "/x");
        assert_eq!((base_name("/a/b/"), base_name("/"), base_name("c")), ("b", "/", "c"));
    }
}
