//! Extended headers (POSIX pax): what they may change about the entry that follows.

use super::Refusal;
use super::member::{Member, MemberKind, Mtime};

/// The records of one extended header, parsed and bounded by the caller.
#[derive(Debug, Default)]
pub(crate) struct PaxRecords {
    records: Vec<(Vec<u8>, Vec<u8>)>,
}

impl PaxRecords {
    /// Parses `LENGTH KEY=VALUE\n` records; values may hold any byte.
    pub(crate) fn parse(mut bytes: &[u8]) -> Result<Self, Refusal> {
        const BAD: Refusal = Refusal::Header("a pax record has a wrong length");
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let space = bytes.iter().position(|b| *b == b' ').ok_or(BAD)?;
            let length: usize = parse_decimal(&bytes[..space]).ok_or(BAD)?;
            let record = bytes.get(space + 1..length).ok_or(BAD)?;
            let (b'\n', record) = record.split_last().ok_or(BAD)? else { return Err(BAD) };
            let equals = record.iter().position(|b| *b == b'=').ok_or(Refusal::Header("a pax record has no '='"))?;
            records.push((record[..equals].to_vec(), record[equals + 1..].to_vec()));
            bytes = &bytes[length..];
        }
        Ok(Self { records })
    }

    /// The size of the data that follows, if the header says so.
    pub(crate) fn size(&self) -> Result<Option<u64>, Refusal> {
        self.records.iter().rfind(|(key, _)| key == b"size").map(|(_, value)| number(value)).transpose()
    }

    /// Whether the entry's name is here.
    pub(crate) fn has_path(&self) -> bool {
        self.records.iter().any(|(key, _)| key == b"path")
    }

    /// Whether anything but a comment is set: a header for all following entries may not do that.
    pub(crate) fn is_only_comment(&self) -> bool {
        self.records.iter().all(|(key, _)| key == b"comment")
    }

    /// Writes the records over what the plain header said.
    pub(crate) fn apply(self, member: &mut Member) -> Result<(), Refusal> {
        for (key, value) in self.records {
            match key.as_slice() {
                b"path" => member.path = value,
                b"linkpath" => member.link = value,
                b"uid" => member.attributes.uid = number(&value)?,
                b"gid" => member.attributes.gid = number(&value)?,
                b"mtime" => member.attributes.mtime = time(&value)?,
                key if key.starts_with(b"GNU.sparse.") && matches!(member.kind, MemberKind::File { .. }) => return Err(Refusal::Sparse),
                key => {
                    if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                        member.attributes.xattrs.push((name.to_vec(), value));
                    }
                }
            }
        }
        Ok(())
    }
}

fn parse_decimal<N: std::str::FromStr>(bytes: &[u8]) -> Option<N> {
    std::str::from_utf8(bytes).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

fn number(bytes: &[u8]) -> Result<u64, Refusal> {
    parse_decimal(bytes).ok_or(Refusal::Header("a pax number is not a number"))
}

/// Seconds since 1970, with or without a fraction, possibly before it.
fn time(bytes: &[u8]) -> Result<Mtime, Refusal> {
    const BAD: Refusal = Refusal::Header("a pax time is not a time");
    let text = std::str::from_utf8(bytes).map_err(|_| BAD)?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().map_err(|_| BAD)?;
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BAD);
    }
    let nanoseconds = fraction.bytes().chain(std::iter::repeat(b'0')).take(9).fold(0, |sum, b| sum * 10 + u32::from(b - b'0'));
    // "-1.25" is a quarter before -1, and a file's time is counted upwards from a whole second.
    if whole.starts_with('-') && nanoseconds > 0 {
        return Ok(Mtime { seconds: seconds.checked_sub(1).ok_or(BAD)?, nanoseconds: 1_000_000_000 - nanoseconds });
    }
    Ok(Mtime { seconds, nanoseconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_with_newlines_in_values_are_kept_whole() {
        let records = PaxRecords::parse(b"14 path=a\nb/c\n11 size=12\n").unwrap();
        assert_eq!(records.records[0], (b"path".to_vec(), b"a\nb/c".to_vec()));
        assert_eq!(records.size(), Ok(Some(12)));
    }

    #[test]
    fn records_that_lie_about_their_length_are_refused() {
        for bad in
            [&b"99999 path=a\n"[..], b"3 a=b\n", b"x path=a\n", b"0 path=a\n", b"-1 a=b\n", b"18446744073709551616 a=b\n", b"8 path=a"]
        {
            assert!(PaxRecords::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn times_before_1970_and_fractions_are_exact() {
        assert_eq!(time(b"1700000000.25"), Ok(Mtime { seconds: 1_700_000_000, nanoseconds: 250_000_000 }));
        assert_eq!(time(b"-1.25"), Ok(Mtime { seconds: -2, nanoseconds: 750_000_000 }));
        assert!(time(b"1.x").is_err());
        assert!(time(b"").is_err());
    }
}
