//! The head of a request or a response, read strictly: line ends are CR LF, one length, one host.

use crate::dial::To;
use crate::door::authority;

const MOST_HEADERS: usize = 128;

/// Headers that end at the next hop; they are written anew.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
];

/// How long a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    /// Until the connection ends; responses only.
    UntilEnd,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) method: String,
    /// In origin form once it was checked.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) framing: Framing,
    pub(crate) close: bool,
    pub(crate) websocket: bool,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) framing: Framing,
    pub(crate) close: bool,
}

/// What is wrong with a head.
pub(crate) type Wrong = &'static str;

/// It is for the client alone, and some servers cut it off while others take it for a part of the path.
const FRAGMENT: Wrong = "the target of the request has a #, which no request may have";

impl Head {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Wrong> {
        check_line_ends(bytes)?;
        let mut slots = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut slots);
        if !matches!(request.parse(bytes), Ok(httparse::Status::Complete(length)) if length == bytes.len()) {
            return Err("the head of the request cannot be read");
        }
        let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
            return Err("the head of the request cannot be read");
        };
        let headers = collect(request.headers);
        let upgrade = values(&headers, "upgrade");
        let websocket = upgrade.len() == 1 && upgrade.first().is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"));
        if !upgrade.is_empty() && !websocket {
            return Err("only websockets may take a connection over");
        }
        let framing = framing(&headers, Framing::Length(0))?;
        let close = version == 0 || tokens(&headers, "connection").any(|token| token == "close");
        Ok(Self { method: method.to_owned(), target: target.to_owned(), headers, framing, close, websocket })
    }

    /// Makes sure that the request is for this host and no other, and brings its target into origin form.
    pub(crate) fn check_host(&mut self, to: &To, port: u16, scheme: &str) -> Result<(), Wrong> {
        if self.method == "CONNECT" {
            return Err("a tunnel cannot be asked for here");
        }
        if self.target.contains('#') {
            return Err(FRAGMENT);
        }
        let default_port = if scheme == "https" { 443 } else { 80 };
        let is_here = |text: &str| authority(text, Some(default_port)).is_some_and(|(host, at)| host == *to && at == port);
        let whole_server = self.target == "*" && self.method == "OPTIONS";
        if !self.target.starts_with('/') && !whole_server {
            let rest =
                self.target.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://")).ok_or("the target of the request is no path")?;
            let (host, path) = rest.find(['/', '?']).map_or((rest, "/"), |at| rest.split_at(at));
            if !is_here(host) || !path.starts_with('/') {
                return Err("the request is for another host than the connection");
            }
            self.target = path.to_owned();
        }
        let hosts = values(&self.headers, "host");
        match (hosts.as_slice(), std::str::from_utf8(hosts.first().copied().unwrap_or_default())) {
            ([_], Ok(text)) if is_here(text) => Ok(()),
            ([_], _) => Err("the request is for another host than the connection"),
            _ => Err("the request needs one host header"),
        }
    }

    /// The bytes to send on: no header that was only for this hop, one framing, no trailers.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        write_headers(&mut out, &self.headers);
        match self.framing {
            Framing::Length(0) if !matches!(self.method.as_str(), "POST" | "PUT" | "PATCH") => {}
            Framing::Length(length) => out.extend(format!("content-length: {length}\r\n").into_bytes()),
            Framing::Chunked | Framing::UntilEnd => out.extend(b"transfer-encoding: chunked\r\n"),
        }
        out.extend(if self.websocket {
            &b"connection: upgrade\r\nupgrade: websocket\r\n\r\n"[..]
        } else {
            b"connection: keep-alive\r\n\r\n"
        });
        out
    }
}

impl ResponseHead {
    pub(crate) fn parse(bytes: &[u8], method: &str) -> Result<Self, Wrong> {
        check_line_ends(bytes)?;
        let mut slots = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut slots);
        if !matches!(response.parse(bytes), Ok(httparse::Status::Complete(length)) if length == bytes.len()) {
            return Err("the head of the response cannot be read");
        }
        let (Some(status), Some(version)) = (response.code, response.version) else {
            return Err("the head of the response cannot be read");
        };
        let headers = collect(response.headers);
        let bodiless = method == "HEAD" || status == 204 || status == 304 || (100..200).contains(&status);
        let framing = if bodiless { Framing::Length(0) } else { framing(&headers, Framing::UntilEnd)? };
        let close = version == 0 || framing == Framing::UntilEnd || tokens(&headers, "connection").any(|token| token == "close");
        Ok(Self { status, reason: response.reason.unwrap_or_default().to_owned(), headers, framing, close })
    }

    pub(crate) fn write(&self, method: &str, websocket: bool) -> Vec<u8> {
        let mut out = format!("HTTP/1.1 {} {}\r\n", self.status, self.reason).into_bytes();
        write_headers(&mut out, &self.headers);
        let length = self.headers.iter().find(|(name, _)| name == "content-length");
        match (self.framing, length) {
            // What it would have been is worth knowing where there is no body.
            (Framing::Length(0), Some((_, length))) if method == "HEAD" || self.status == 304 => {
                out.extend([&b"content-length: "[..], length, b"\r\n"].concat());
            }
            (Framing::Length(0), _) if self.status < 200 || self.status == 204 || self.status == 304 => {}
            (Framing::Length(length), _) => out.extend(format!("content-length: {length}\r\n").into_bytes()),
            (Framing::Chunked, _) => out.extend(b"transfer-encoding: chunked\r\n"),
            (Framing::UntilEnd, _) => {}
        }
        if websocket {
            out.extend(b"connection: upgrade\r\nupgrade: websocket\r\n");
        } else if self.close {
            out.extend(b"connection: close\r\n");
        }
        out.extend(b"\r\n");
        out
    }
}

fn check_line_ends(bytes: &[u8]) -> Result<(), Wrong> {
    let bare = |at: usize| match bytes.get(at) {
        Some(b'\n') => at == 0 || bytes.get(at - 1) != Some(&b'\r'),
        Some(b'\r') => bytes.get(at + 1) != Some(&b'\n'),
        Some(0) => true,
        _ => false,
    };
    if (0..bytes.len()).any(bare) { Err("lines have to end with CR LF") } else { Ok(()) }
}

fn collect(headers: &[httparse::Header<'_>]) -> Vec<(String, Vec<u8>)> {
    headers.iter().map(|header| (header.name.to_ascii_lowercase(), header.value.to_vec())).collect()
}

fn write_headers(out: &mut Vec<u8>, headers: &[(String, Vec<u8>)]) {
    for (name, value) in headers.iter().filter(|(name, _)| !HOP_BY_HOP.contains(&name.as_str())) {
        out.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
}

fn values<'a>(headers: &'a [(String, Vec<u8>)], name: &str) -> Vec<&'a [u8]> {
    headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_slice()).collect()
}

fn tokens<'a>(headers: &'a [(String, Vec<u8>)], name: &str) -> impl Iterator<Item = String> + use<'a> {
    let all: Vec<&[u8]> = values(headers, name);
    all.into_iter()
        .flat_map(|value| String::from_utf8_lossy(value).split(',').map(|token| token.trim().to_ascii_lowercase()).collect::<Vec<_>>())
}

fn framing(headers: &[(String, Vec<u8>)], otherwise: Framing) -> Result<Framing, Wrong> {
    let (lengths, codings) = (values(headers, "content-length"), values(headers, "transfer-encoding"));
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Ok(otherwise),
        ([length], []) => {
            let digits = std::str::from_utf8(length).ok().filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
            digits.and_then(|text| text.parse().ok()).map(Framing::Length).ok_or("the length of the body cannot be read")
        }
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
        _ => Err("the length of the body is ambiguous"),
    }
}

#[cfg(test)]
mod tests {
    use belljar_policy::HostName;

    use super::*;

    fn check(text: &str) -> Result<Head, Wrong> {
        let mut head = Head::parse(text.as_bytes())?;
        head.check_host(&To::Name(HostName::from_wire(b"a.test").unwrap()), 80, "http")?;
        Ok(head)
    }

    #[test]
    fn one_reading_of_a_request_or_none() {
        for (text, target) in [
            ("GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n", "/x"),
            ("GET http://A.test/x?y HTTP/1.1\r\nHost: a.test:80\r\n\r\n", "/x?y"),
            ("GET http://a.test HTTP/1.1\r\nHost: a.test.\r\n\r\n", "/"),
            ("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", "*"),
            ("POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: 3\r\n\r\n", "/"),
            ("GET / HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "/"),
        ] {
            assert_eq!(check(text).unwrap().target, target, "{text:?}");
        }
        for text in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\nHost: evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
            "GET http://evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET http://a.test@evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET http://a.test:81/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test:81\r\n\r\n",
            "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET a.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: +3\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\nX: a\r\n b\r\n\r\n",
            "GET / HTTP/1.1\nHost: a.test\n\n",
            "GET / HTTP/1.1\r\nHost: a.test\rX: y\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\nX : y\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\nUpgrade: h2c\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: a.test\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        ] {
            assert!(check(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_target_with_a_fragment_is_refused_by_name() {
        for target in ["/a#/../b", "/a#", "/#", "/a?x#y", "http://a.test/a#b", "http://a.test#@evil.test/"] {
            let told = check(&format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
            assert_eq!(told, Err(FRAGMENT), "{target}");
        }
        assert!(check("GET /a%23b HTTP/1.1\r\nHost: a.test\r\n\r\n").is_ok(), "an encoded one is part of the path");
    }

    #[test]
    fn what_was_for_this_hop_is_not_sent_on() {
        let head = check("POST /x HTTP/1.1\r\nHost: a.test\r\nConnection: authorization, close\r\nAuthorization: mine\r\nProxy-Authorization: x\r\nTE: trailers\r\nTransfer-Encoding: Chunked\r\n\r\n").unwrap();
        assert!(head.close);
        let sent = String::from_utf8(head.write()).unwrap();
        assert_eq!(
            sent,
            "POST /x HTTP/1.1\r\nhost: a.test\r\nauthorization: mine\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n"
        );
    }

    #[test]
    fn the_end_of_a_response_is_told() {
        let framing = |text: &str, method: &str| ResponseHead::parse(text.as_bytes(), method).map(|head| head.framing);
        assert_eq!(framing("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET"), Ok(Framing::Length(5)));
        assert_eq!(framing("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD"), Ok(Framing::Length(0)));
        assert_eq!(framing("HTTP/1.1 200 OK\r\n\r\n", "GET"), Ok(Framing::UntilEnd));
        assert_eq!(framing("HTTP/1.1 304 Not Modified\r\n\r\n", "GET"), Ok(Framing::Length(0)));
        assert!(framing("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "GET").is_err());
    }
}
