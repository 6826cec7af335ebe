//! Messages of DNS, as much of them as is needed: one question in, one answer out. Everything from a sandbox is hostile.

use std::net::Ipv4Addr;

use belljar_policy::HostName;

pub(super) const A: u16 = 1;
pub(super) const CNAME: u16 = 5;
pub(super) const AAAA: u16 = 28;
pub(super) const OPT: u16 = 41;
pub(super) const SVCB: u16 = 64;
pub(super) const HTTPS: u16 = 65;
const INTERNET: u16 = 1;
const HEADER: usize = 12;
const LONGEST_NAME: usize = 255;

/// How a question was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    NoError = 0,
    Malformed = 1,
    NoSuchName = 3,
    NotImplemented = 4,
    Refused = 5,
}

/// One question.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    id: u16,
    recursion: bool,
    /// The name as it came, length bytes and all: it is repeated in the answer.
    raw_name: Vec<u8>,
    /// The name, if it is one.
    pub(super) name: Option<HostName>,
    pub(super) kind: u16,
    class: u16,
    /// Whether the asker understands longer answers.
    extended: bool,
    pub(super) operation: u8,
}

impl Question {
    /// Reads a message with exactly one question; `None` for anything that deserves no answer at all.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER>()?;
        let number = |at: usize| header.get(at..at + 2).and_then(|pair| pair.try_into().ok()).map_or(0, u16::from_be_bytes);
        let flags = number(2);
        if flags & 0x8000 != 0 || number(4) != 1 || number(6) != 0 {
            return None;
        }
        let mut at = HEADER;
        let (mut raw_name, mut dotted) = (Vec::new(), Vec::new());
        loop {
            let length = *bytes.get(at)?;
            // Questions are never compressed.
            if length > 63 {
                return None;
            }
            let label = bytes.get(at + 1..at + 1 + usize::from(length))?;
            raw_name.push(length);
            raw_name.extend_from_slice(label);
            at += 1 + label.len();
            if raw_name.len() > LONGEST_NAME {
                return None;
            }
            if length == 0 {
                break;
            }
            if !dotted.is_empty() {
                dotted.push(b'.');
            }
            // A dot inside a label would make another name of it.
            dotted.extend(label.iter().map(|byte| if *byte == b'.' { 0 } else { *byte }));
        }
        let tail = bytes.get(at..at + 4)?;
        let kind = u16::from_be_bytes([*tail.first()?, *tail.get(1)?]);
        let class = u16::from_be_bytes([*tail.get(2)?, *tail.get(3)?]);
        // An additional record with an empty name and the kind OPT, wherever else it points.
        let extended = number(10) > 0 && bytes.get(at + 4..at + 7) == Some(&[0, 0, 41]);
        Some(Self {
            id: number(0),
            recursion: flags & 0x0100 != 0,
            name: HostName::from_wire(&dotted),
            raw_name,
            kind,
            class,
            extended,
            operation: u8::try_from((flags >> 11) & 15).unwrap_or(0),
        })
    }

    pub(super) fn is_internet(&self) -> bool {
        self.class == INTERNET
    }

    /// An answer: an address or none, and a reason for whoever can read one.
    pub(super) fn answer(&self, code: Code, address: Option<Ipv4Addr>, ttl: u32, reason: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.extend(self.id.to_be_bytes());
        let flags = 0x8000 | (u16::from(self.operation) << 11) | 0x0400 | if self.recursion { 0x0180 } else { 0x0080 } | code as u16;
        out.extend(flags.to_be_bytes());
        for count in [1, u16::from(address.is_some()), 0, u16::from(self.extended)] {
            out.extend(count.to_be_bytes());
        }
        out.extend(&self.raw_name);
        out.extend(self.kind.to_be_bytes());
        out.extend(self.class.to_be_bytes());
        if let Some(address) = address {
            out.extend([0xc0, 12]);
            out.extend(A.to_be_bytes());
            out.extend(INTERNET.to_be_bytes());
            out.extend(ttl.to_be_bytes());
            out.extend(4u16.to_be_bytes());
            out.extend(address.octets());
        }
        if self.extended {
            out.extend(opt_record(reason));
        }
        out
    }
}

/// The record of longer answers, with "blocked" (RFC 8914) and the reason if there is one.
fn opt_record(reason: &str) -> Vec<u8> {
    const EXTENDED_ERROR: u16 = 15;
    const BLOCKED: u16 = 15;
    let reason = reason.get(..reason.len().min(200)).unwrap_or_default();
    let mut data = Vec::new();
    if !reason.is_empty() {
        data.extend(EXTENDED_ERROR.to_be_bytes());
        data.extend(u16::try_from(reason.len() + 2).unwrap_or(2).to_be_bytes());
        data.extend(BLOCKED.to_be_bytes());
        data.extend(reason.as_bytes());
    }
    let mut record = vec![0];
    record.extend(OPT.to_be_bytes());
    record.extend(1232u16.to_be_bytes());
    record.extend([0; 4]);
    record.extend(u16::try_from(data.len()).unwrap_or(0).to_be_bytes());
    record.extend(data);
    record
}

/// A question for the addresses of a name, to be sent to a name server.
pub(super) fn ask(id: u16, name: &HostName) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend(id.to_be_bytes());
    out.extend(0x0100u16.to_be_bytes());
    for count in [1u16, 0, 0, 0] {
        out.extend(count.to_be_bytes());
    }
    for label in name.as_str().split('.') {
        out.push(u8::try_from(label.len()).unwrap_or(0));
        out.extend(label.as_bytes());
    }
    out.push(0);
    out.extend(A.to_be_bytes());
    out.extend(INTERNET.to_be_bytes());
    out
}

/// What a name server said.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) addresses: Vec<Ipv4Addr>,
    pub(super) truncated: bool,
    pub(super) code: u8,
}

/// Reads the answer to a question; `None` if it is not one.
pub(super) fn read_answer(question: &[u8], bytes: &[u8]) -> Option<Answer> {
    let number = |at: usize| bytes.get(at..at + 2).and_then(|pair| pair.try_into().ok()).map(u16::from_be_bytes);
    let flags = number(2)?;
    let echoed =
        bytes.get(HEADER..question.len()).is_some_and(|echo| echo.eq_ignore_ascii_case(question.get(HEADER..).unwrap_or_default()));
    if bytes.get(..2) != question.get(..2) || flags & 0x8000 == 0 || number(4)? != 1 || !echoed {
        return None;
    }
    let code = u8::try_from(flags & 15).unwrap_or(0);
    let truncated = flags & 0x0200 != 0;
    let mut addresses = Vec::new();
    let mut at = question.len();
    for _ in 0..number(6)? {
        at = skip_name(bytes, at)?;
        let (kind, class, length) = (number(at)?, number(at + 2)?, usize::from(number(at + 8)?));
        let data = bytes.get(at + 10..at + 10 + length)?;
        match (kind, class, <[u8; 4]>::try_from(data)) {
            (A, INTERNET, Ok(octets)) => addresses.push(octets.into()),
            // Whoever answers has followed it: what it leads to is in the same answer.
            (CNAME, ..) => {}
            _ => {}
        }
        at += 10 + length;
    }
    Some(Answer { addresses, truncated, code })
}

fn skip_name(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            length if length >= 0xc0 => return Some(at + 2),
            length if length <= 63 => at += 1 + usize::from(length),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> HostName {
        HostName::from_wire(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_question_is_read_and_its_answer_is_understood_by_the_asker() {
        let asked = ask(7, &name("a.test"));
        let question = Question::parse(&asked).unwrap();
        assert_eq!((question.name.as_ref(), question.kind, question.is_internet()), (Some(&name("a.test")), A, true));
        let answered = question.answer(Code::NoError, Some([198, 18, 0, 9].into()), 30, "");
        assert_eq!(read_answer(&asked, &answered).unwrap().addresses, [Ipv4Addr::new(198, 18, 0, 9)]);
        assert_eq!(read_answer(&asked, &question.answer(Code::NoSuchName, None, 0, "")).unwrap().code, 3);
        assert_eq!(read_answer(&ask(8, &name("a.test")), &answered), None, "another question's answer");
        assert_eq!(read_answer(&ask(7, &name("b.test")), &answered), None, "another name's answer");
    }

    #[test]
    fn names_that_hide_another_are_no_names() {
        let mut asked = ask(7, &name("aaa.test"));
        asked[14] = b'.';
        assert_eq!(Question::parse(&asked).unwrap().name, None);
        asked[14] = 0;
        assert_eq!(Question::parse(&asked).unwrap().name, None);
        asked[12] = 0xc0;
        assert_eq!(Question::parse(&asked), None, "compression in a question");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(question) = Question::parse(&bytes) {
                prop_assert!(question.answer(Code::Refused, None, 0, "because").len() > HEADER);
            }
            let asked = ask(1, &name("a.test"));
            drop(read_answer(&asked, &bytes));
            drop(read_answer(&asked, &[&asked[..2], &[0x80, 0, 0, 1, 0, 9, 0, 0, 0, 0], &asked[12..], &bytes].concat()));
        }
    }
}
