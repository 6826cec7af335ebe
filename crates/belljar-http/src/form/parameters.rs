//! What stands after the semicolons of a header: `form-data; name="file"; filename="a \"b\".txt"`.

/// The value of a parameter. Of several of one name the first counts.
pub(super) fn parameter(header: &str, name: &str) -> Option<String> {
    let (_, mut rest) = header.split_once(';')?;
    loop {
        let (key, after) = rest.split_once('=')?;
        let (value, after) = value(after.trim_start());
        // Words without a value, before it.
        let key = key.rsplit(';').next().unwrap_or(key).trim();
        if key.eq_ignore_ascii_case(name) {
            return value;
        }
        rest = after.split_once(';')?.1;
    }
}

/// A value, if it is a whole one, and what comes after it.
fn value(text: &str) -> (Option<String>, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        return (Some(text[..end].trim_end().to_owned()), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (Some(value), &quoted[at + 1..]),
            // As the vendor's server does: elsewhere a backslash is one, for clients that send paths of other systems as they are.
            '\\' => match characters.next_if(|(_, next)| "()<>@,;:\\\"/[]?=".contains(*next)) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push('\\'),
            },
            other => value.push(other),
        }
    }
    (None, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(header: &str) -> (Option<String>, Option<String>) {
        (parameter(header, "name"), parameter(header, "filename"))
    }

    #[test]
    fn values_are_found_quoted_or_not() {
        let both = (Some("file".to_owned()), Some("a b.txt".to_owned()));
        assert_eq!(names(r#"form-data; name="file"; filename="a b.txt""#), both);
        assert_eq!(names(r#"form-data;FileName="a b.txt";NAME=file"#), both);
        assert_eq!(names(r#"form-data; flag; name = file ; filename="a b.txt"; filename="other""#), both);
        assert_eq!(names(r#"form-data; filename="x; name=\"no\"""#), (None, Some(r#"x; name="no""#.to_owned())));
        assert_eq!(names(r#"form-data; name=file; filename="C:\data\a \"b\".txt""#).1.unwrap(), r#"C:\data\a "b".txt"#);
        assert_eq!(names("form-data; name=\"你好\"; filename=\"\""), (Some("你好".to_owned()), Some(String::new())));
    }

    #[test]
    fn half_values_are_none() {
        for header in ["", "form-data", "form-data;", "form-data; name", "form-data; name=\"file", "form-data; name=\"file\\\""] {
            assert_eq!(parameter(header, "name"), None, "{header}");
        }
    }
}
