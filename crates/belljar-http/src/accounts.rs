//! Users and groups of a sandbox, by name. The sandbox's own lists say which numbers they have; both are hostile, so they are read up to a bound and
//! nothing in them is believed to be more than a number.

use belljar_core::Session;
use belljar_types::{ByteRange, GuestPath, UserName};
use futures_util::StreamExt;

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";
const LARGEST: u64 = 1 << 20;

/// A user's number and its group's.
pub async fn user_numbers(session: &Session, name: &str) -> Option<(u32, u32)> {
    let text = list(session, USERS).await?;
    let mut fields = entry(&text, name)?;
    Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A group's number.
pub async fn group_number(session: &Session, name: &str) -> Option<u32> {
    let text = list(session, GROUPS).await?;
    entry(&text, name)?.nth(1)?.parse().ok()
}

/// The fields behind a name.
fn entry<'a>(text: &'a str, name: &str) -> Option<std::str::Split<'a, char>> {
    text.lines().map(|line| line.split(':')).find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))
}

async fn list(session: &Session, path: &str) -> Option<String> {
    let root: UserName = "root".parse().ok()?;
    let range = ByteRange { offset: 0, length: Some(LARGEST) };
    let mut content = session.read_file(&GuestPath::new(path).ok()?, range, Some(&root)).await.ok()?;
    let mut text = Vec::new();
    while let Some(Ok(piece)) = content.bytes.next().await {
        text.extend_from_slice(&piece);
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_a_whole() {
        let text = "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1001::/home/user:/bin/bash\n";
        let numbers = |name: &str| entry(text, name).and_then(|mut fields| Some((fields.nth(1)?, fields.next()?)));
        assert_eq!((numbers("user"), numbers("root"), numbers("use")), (Some(("1000", "1001")), Some(("0", "0")), None));
    }
}
