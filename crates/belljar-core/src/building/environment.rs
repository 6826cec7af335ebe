//! Variables in the values of variables: `PATH=/opt/bin:$PATH`. Done here and not by a shell, so that nothing in a value is ever run.

use std::collections::BTreeMap;

/// A value with `$NAME` and `${NAME}` replaced; what is not set is empty, and `\$` is a dollar.
pub(super) fn expand(value: &str, env: &BTreeMap<String, String>) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut done = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find(['$', '\\']) {
        let (before, from) = rest.split_at(at);
        done.push_str(before);
        if let Some(after) = from.strip_prefix("\\$") {
            done.push('$');
            rest = after;
            continue;
        }
        let Some(after) = from.strip_prefix('$') else {
            done.push('\\');
            rest = from.strip_prefix('\\').unwrap_or_default();
            continue;
        };
        let braced = after.strip_prefix('{').and_then(|inside| inside.split_once('}')).filter(|(name, _)| name.chars().all(is_name));
        let (name, left) = braced.unwrap_or_else(|| after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len())));
        if name.is_empty() {
            done.push('$');
            rest = after;
        } else {
            done.push_str(env.get(name).map_or("", String::as_str));
            rest = left;
        }
    }
    done.push_str(rest);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_nothing_is_run() {
        let env = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned()), ("A_1".to_owned(), "x".to_owned())]);
        let cases = [
            ("/opt:$PATH", "/opt:/bin"),
            ("${PATH}:/opt", "/bin:/opt"),
            ("$A_1$A_1-$NONE.", "xx-."),
            ("a\\$PATH", "a$PATH"),
            ("$(id) `id` $", "$(id) `id` $"),
            ("${PATH", "${PATH"),
            ("\\n", "\\n"),
            ("ü$PATH", "ü/bin"),
        ];
        for (value, expected) in cases {
            assert_eq!(expand(value, &env), expected, "{value}");
        }
    }
}
