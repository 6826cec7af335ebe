//! What git says, for programs: how a repository stands, what was committed, and why something was not done.

use axum::http::StatusCode;
use serde_json::json;

use crate::dto::{Status, StatusOfFile};
use crate::errors::ApiError;

/// What `status --porcelain=v2 --branch -z` says.
pub(super) fn status(text: &str) -> Status {
    let mut status = Status {
        current_branch: String::new(),
        detached: false,
        upstream: String::new(),
        branch_published: false,
        ahead: 0,
        behind: 0,
        file_status: Vec::new(),
    };
    let mut records = text.split('\0');
    while let Some(record) = records.next() {
        let (kind, rest) = record.split_once(' ').unwrap_or((record, ""));
        match kind {
            "#" => head(&mut status, rest),
            "1" => status.file_status.extend(changed(rest, 7, "")),
            // Behind a file that was moved stands where it was.
            "2" => {
                let before = records.next().unwrap_or_default();
                status.file_status.extend(changed(rest, 8, before));
            }
            "u" => status.file_status.extend(changed(rest, 9, "")),
            "?" => status.file_status.push(StatusOfFile {
                name: rest.to_owned(),
                extra: String::new(),
                staging: "Untracked",
                worktree: "Untracked",
            }),
            _ => {}
        }
    }
    status
}

fn head(status: &mut Status, line: &str) {
    match line.split_once(' ') {
        Some(("branch.head", "(detached)")) => (status.detached, status.current_branch) = (true, "HEAD".to_owned()),
        Some(("branch.head", name)) => status.current_branch = name.to_owned(),
        Some(("branch.upstream", name)) => (status.branch_published, status.upstream) = (true, name.to_owned()),
        Some(("branch.ab", counts)) => {
            let mut counts = counts.split(' ').map(|count| count.trim_start_matches(['+', '-']).parse().unwrap_or(0));
            (status.ahead, status.behind) = (counts.next().unwrap_or(0), counts.next().unwrap_or(0));
        }
        _ => {}
    }
}

/// A file whose name stands behind so many other fields.
fn changed(rest: &str, fields: usize, before: &str) -> Option<StatusOfFile> {
    let name = rest.splitn(fields + 1, ' ').nth(fields)?;
    let mut letters = rest.chars();
    let (staging, worktree) = (word(letters.next()?), word(letters.next()?));
    Some(StatusOfFile { name: name.to_owned(), extra: before.to_owned(), staging, worktree })
}

fn word(letter: char) -> &'static str {
    match letter {
        'M' | 'T' => "Modified",
        'A' => "Added",
        'D' => "Deleted",
        'R' => "Renamed",
        'C' => "Copied",
        'U' => "Updated but unmerged",
        _ => "Unmodified",
    }
}

/// What `log` says in our own format.
pub(super) fn history(text: &str) -> Vec<serde_json::Value> {
    let commit = |record: &str| {
        let mut fields = record.trim_start_matches('\n').splitn(5, '\u{1f}');
        let (hash, author, email, at, message) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        Some(json!({ "hash": hash, "author": author, "email": email, "timestamp": at, "message": message.trim_end_matches('\n') }))
    };
    text.split('\u{1e}').filter_map(commit).collect()
}

/// What `config --null --get-regexp` says of remotes.
pub(super) fn remotes(text: &str) -> Vec<serde_json::Value> {
    let remote = |record: &str| {
        let (key, url) = record.split_once('\n')?;
        let name = key.strip_prefix("remote.")?.strip_suffix(".url")?;
        Some(json!({ "name": name, "url": url }))
    };
    text.split('\0').filter_map(remote).collect()
}

/// Why git did not do it, by its words: it has no numbers for that.
pub(super) fn refusal(words: &str) -> ApiError {
    let known = [
        ("could not read Username", StatusCode::UNAUTHORIZED, "GIT_AUTH_FAILED"),
        ("Authentication failed", StatusCode::UNAUTHORIZED, "GIT_AUTH_FAILED"),
        ("not a git repository", StatusCode::NOT_FOUND, "GIT_REPO_NOT_FOUND"),
        ("does not appear to be a git repository", StatusCode::NOT_FOUND, "GIT_REPO_NOT_FOUND"),
        ("repository not found", StatusCode::NOT_FOUND, "GIT_REPO_NOT_FOUND"),
        ("does not exist", StatusCode::NOT_FOUND, "GIT_REPO_NOT_FOUND"),
        ("already exists", StatusCode::CONFLICT, "GIT_BRANCH_EXISTS"),
        ("Remote branch", StatusCode::NOT_FOUND, "GIT_BRANCH_NOT_FOUND"),
        ("did not match any file", StatusCode::NOT_FOUND, "GIT_BRANCH_NOT_FOUND"),
        ("invalid reference", StatusCode::NOT_FOUND, "GIT_BRANCH_NOT_FOUND"),
        ("branch '", StatusCode::NOT_FOUND, "GIT_BRANCH_NOT_FOUND"),
        ("would be overwritten", StatusCode::CONFLICT, "GIT_DIRTY_WORKTREE"),
        ("CONFLICT", StatusCode::CONFLICT, "GIT_MERGE_CONFLICT"),
        ("[rejected]", StatusCode::CONFLICT, "GIT_PUSH_REJECTED"),
        ("[remote rejected]", StatusCode::UNPROCESSABLE_ENTITY, "GIT_REMOTE_REJECTED"),
        ("Could not resolve host", StatusCode::BAD_GATEWAY, "GIT_TRANSPORT_FAILED"),
        ("Failed to connect", StatusCode::BAD_GATEWAY, "GIT_TRANSPORT_FAILED"),
        ("unable to access", StatusCode::BAD_GATEWAY, "GIT_TRANSPORT_FAILED"),
    ];
    let said = words.trim();
    let message =
        belljar_types::escape_untrusted(said.get(..said.floor_char_boundary(4000)).unwrap_or_default().as_bytes()).replace("\\n", "; ");
    match known.into_iter().find(|(part, ..)| words.contains(part)) {
        Some((_, status, code)) => ApiError::new(status, message).with_code(code),
        None => ApiError::bad_request(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_field_by_field() {
        let text = "# branch.oid 1234\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -1\0\
                    1 A. N... 000000 100644 100644 0000 1111 new file.txt\0\
                    2 R. N... 100644 100644 100644 1111 1111 R100 to.txt\0from.txt\0\
                    1 .M N... 100644 100644 100644 1111 1111 b\0\
                    ? other\0";
        let status = status(text);
        assert_eq!((status.current_branch.as_str(), status.ahead, status.behind, status.branch_published), ("main", 2, 1, true));
        let files: Vec<_> =
            status.file_status.iter().map(|file| (file.name.as_str(), file.extra.as_str(), file.staging, file.worktree)).collect();
        let expected = [
            ("new file.txt", "", "Added", "Unmodified"),
            ("to.txt", "from.txt", "Renamed", "Unmodified"),
            ("b", "", "Unmodified", "Modified"),
            ("other", "", "Untracked", "Untracked"),
        ];
        assert_eq!(files, expected);
        assert!(super::status("# branch.head (detached)\0").detached);
    }

    #[test]
    fn a_guests_git_can_say_anything() {
        for text in ["", "1", "1 ", "2 R. N", "u UU", "# branch.ab x y", "\0\0", "? "] {
            let _ = status(text);
            let _ = history(text);
            let _ = remotes(text);
        }
    }

    #[test]
    fn history_keeps_messages_as_they_are() {
        let log = history(
            "aa\u{1f}A\u{1f}a@b\u{1f}2026-01-01T00:00:00Z\u{1f}one\n\ntwo\n\u{1e}\nbb\u{1f}B\u{1f}b@b\u{1f}2026-01-02T00:00:00Z\u{1f}x\n\u{1e}\n",
        );
        assert_eq!((log.len(), log[0]["message"].as_str(), log[1]["hash"].as_str()), (2, Some("one\n\ntwo"), Some("bb")));
    }

    #[test]
    fn refusals_are_known_by_their_words() {
        for (words, status, code) in [
            ("fatal: not a git repository (or any parent)", 404, "GIT_REPO_NOT_FOUND"),
            ("fatal: could not read Username for 'https://x'", 401, "GIT_AUTH_FAILED"),
            ("fatal: a branch named 'x' already exists", 409, "GIT_BRANCH_EXISTS"),
            ("error: pathspec 'x' did not match any file(s) known to git", 404, "GIT_BRANCH_NOT_FOUND"),
            (" ! [rejected] main -> main (fetch first)", 409, "GIT_PUSH_REJECTED"),
            ("odd", 400, "BAD_REQUEST"),
        ] {
            let error = refusal(words);
            assert_eq!((error.status().as_u16(), error.code().as_str()), (status, code), "{words}");
        }
    }
}
