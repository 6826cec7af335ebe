//! Headers on their way to a program and back: what belongs to one connection stops here, and so does every credential of ours.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{Forwarded, parameter};
use crate::auth::KEY_HEADER;
use crate::port_token::{SECURE_TOKEN_COOKIE, TOKEN_COOKIE, TOKEN_HEADER, TOKEN_PARAMETER};
use crate::serve::Peer;

/// RFC 9110, 7.6.1, with the two that old programs send.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// What the client wants to change the connection into.
pub(super) fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = list(headers, &header::CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
    headers.get(header::UPGRADE).filter(|_| asks).cloned()
}

/// The port tokens that a request shows: the one in the header, or else all in cookies of that name. A neighbour below the same domain can add
/// cookies to a browser, and must not be able to shut anybody out with a wrong one.
pub(super) fn tokens(headers: &HeaderMap) -> Vec<&str> {
    match headers.get(TOKEN_HEADER) {
        Some(value) => vec![value.to_str().unwrap_or_default()],
        // What is not ASCII is no token of ours, but it is what somebody showed: a wrong one.
        None => cookies(headers).filter(|pair| is_ours(pair)).map(|pair| std::str::from_utf8(value_of(pair)).unwrap_or_default()).collect(),
    }
}

/// Whether a cookie is one of those that hold a token.
fn is_ours(pair: &[u8]) -> bool {
    let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
    name == TOKEN_COOKIE.as_bytes() || name == SECURE_TOKEN_COOKIE.as_bytes()
}

fn value_of(pair: &[u8]) -> &[u8] {
    let equals = pair.iter().position(|byte| *byte == b'=');
    equals.and_then(|equals| pair.get(equals + 1..)).unwrap_or_default().trim_ascii()
}

/// Keeps a program's cookies to its own host name: none of ours, which only the server sets, and none for the domain that all sandboxes are below,
/// which a browser would show to every neighbour.
pub(super) fn confine_cookies(headers: &mut HeaderMap) {
    if !headers.contains_key(header::SET_COOKIE) {
        return;
    }
    let set: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().cloned().collect();
    headers.remove(header::SET_COOKIE);
    for value in set.iter().filter_map(confined) {
        headers.append(header::SET_COOKIE, value);
    }
}

fn confined(value: &HeaderValue) -> Option<HeaderValue> {
    let mut parts = value.as_bytes().split(|byte| *byte == b';');
    let cookie = parts.next().unwrap_or_default();
    if is_ours(cookie) {
        return None;
    }
    let is_domain = |part: &&[u8]| part.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii().eq_ignore_ascii_case(b"domain");
    let kept: Vec<&[u8]> = std::iter::once(cookie).chain(parts.filter(|part| !is_domain(part))).collect();
    HeaderValue::from_bytes(&kept.join(&b';')).ok()
}

/// Makes a client's headers fit for a program.
pub(super) fn prepare(
    headers: &mut HeaderMap,
    authority: Option<&Authority>,
    peer: Option<&Peer>,
    forwarded: &Forwarded,
    upgrade: Option<&HeaderValue>,
) {
    clean_answer(headers);
    if let Some(upgrade) = upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade.clone());
    }
    remove_credentials(headers);
    // HTTP/2 has the host in the request's target.
    if !headers.contains_key(header::HOST)
        && let Some(host) = authority.and_then(|authority| HeaderValue::from_str(authority.as_str()).ok())
    {
        headers.insert(header::HOST, host);
    }
    forward_origin(headers, peer, forwarded);
}

/// Removes what belongs to one connection.
pub(super) fn clean_answer(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = list(headers, &header::CONNECTION).filter_map(|word| word.parse().ok()).collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// The same for an answer that changes the protocol, which needs two of them.
pub(super) fn clean_upgrade(headers: &mut HeaderMap) {
    let upgrade = headers.get(header::UPGRADE).cloned();
    clean_answer(headers);
    if let Some(upgrade) = upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade);
    }
}

fn remove_credentials(headers: &mut HeaderMap) {
    headers.remove(TOKEN_HEADER);
    // The address that a browser comes from may be the one a token was in.
    let told = headers.get(header::REFERER).map(|value| String::from_utf8_lossy(value.as_bytes()));
    if told.as_deref().and_then(|told| parameter(told.split_once('?')?.1, TOKEN_PARAMETER)).is_some() {
        headers.remove(header::REFERER);
    }
    // A program may have keys of its own in the same headers; only ours are held back.
    let has_key = |value: &HeaderValue| {
        let text = String::from_utf8_lossy(value.as_bytes());
        text.split(|c: char| c.is_ascii_whitespace()).any(|word| word.starts_with("bj_") || word.starts_with("e2b_"))
    };
    for name in [header::AUTHORIZATION, KEY_HEADER] {
        if headers.get_all(&name).iter().any(has_key) {
            headers.remove(name);
        }
    }
    if cookies(headers).any(is_ours) {
        let kept: Vec<&[u8]> = cookies(headers).filter(|pair| !is_ours(pair)).collect();
        let kept = kept.join(&b"; "[..]);
        headers.remove(header::COOKIE);
        if !kept.is_empty()
            && let Ok(value) = HeaderValue::from_bytes(&kept)
        {
            headers.insert(header::COOKIE, value);
        }
    }
}

fn forward_origin(headers: &mut HeaderMap, peer: Option<&Peer>, forwarded: &Forwarded) {
    const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
    const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
    const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
    const PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
    // What a client says about itself is worth nothing, unless it is the operator's own proxy.
    if !peer.is_some_and(|peer| peer.behind_proxy) {
        for name in [FOR, PROTO, HOST, header::FORWARDED] {
            headers.remove(name);
        }
    }
    headers.remove(PREFIX);
    if let Some(peer) = peer {
        let before = headers.get(FOR).and_then(|value| value.to_str().ok()).map(|value| format!("{value}, ")).unwrap_or_default();
        set(headers, FOR, &format!("{before}{}", peer.address.ip()));
        if !headers.contains_key(PROTO) {
            set(headers, PROTO, if peer.tls { "https" } else { "http" });
        }
    }
    if !headers.contains_key(HOST)
        && let Some(host) = headers.get(header::HOST).cloned()
    {
        headers.insert(HOST, host);
    }
    if let Some(prefix) = &forwarded.prefix {
        set(headers, PREFIX, prefix);
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).map(str::trim)
}

/// Each as it was written. Browsers send what programs have set, and that need not be ASCII.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(header::COOKIE).iter();
    lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';')).map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(given: &[(&'static str, &'static str)], behind_proxy: bool) -> Vec<(String, String)> {
        let mut headers: HeaderMap = given.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let peer = Peer { address: "10.1.2.3:9".parse().unwrap(), tls: false, behind_proxy };
        let upgrade = upgrade_of(&headers);
        prepare(&mut headers, None, Some(&peer), &Forwarded::default(), upgrade.as_ref());
        let shown = headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        let mut all: Vec<_> = shown.filter(|(name, _)| !name.starts_with("x-forwarded-proto")).collect();
        all.sort();
        all
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn no_credential_of_ours_reaches_a_program() {
        let given = [
            ("authorization", "Bearer bj_0123"),
            ("x-api-key", "e2b_0123"),
            ("x-belljar-token", "t"),
            ("cookie", "a=1; belljar_token=t; __Host-belljar_token=t; b=2"),
            ("accept", "*/*"),
        ];
        assert_eq!(prepared(&given, false), pairs(&[("accept", "*/*"), ("cookie", "a=1; b=2"), ("x-forwarded-for", "10.1.2.3")]));
    }

    #[test]
    fn a_byte_that_is_not_ascii_hides_no_cookie() {
        let mut headers = HeaderMap::new();
        let line = b"a=\xc3\xbc; belljar_token=t; b=\xff; flag; __Host-belljar_token = s ;c=1=2";
        headers.insert(header::COOKIE, HeaderValue::from_bytes(line).unwrap());
        headers.append(header::COOKIE, HeaderValue::from_bytes(b"belljar_token=\xff").unwrap());
        assert_eq!(tokens(&headers), ["t", "s", ""]);
        prepare(&mut headers, None, None, &Forwarded::default(), None);
        let left: Vec<_> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(left, [&b"a=\xc3\xbc; b=\xff; flag; c=1=2"[..]]);
    }

    #[test]
    fn an_address_with_a_token_in_it_is_not_told() {
        for (told, kept) in [
            ("http://8000-x.boxes.example/a?belljar_token=t", false),
            ("http://8000-x.boxes.example/a?b=1&belljar%5Ftoken=t#c", false),
            ("http://8000-x.boxes.example/a?b=1", true),
            ("http://8000-x.boxes.example/belljar_token=t", true),
        ] {
            assert_eq!(prepared(&[("referer", told)], false).iter().any(|(name, _)| name == "referer"), kept, "{told}");
        }
    }

    #[test]
    fn a_program_sets_no_cookie_of_ours_and_none_for_its_neighbours() {
        let mut headers = HeaderMap::new();
        for value in [
            "a=1",
            " belljar_token=x; Domain=boxes.example",
            "__Host-belljar_token=x; Path=/; Secure",
            "b=belljar_token",
            "c=1; Path=/; DOMAIN = .boxes.example; Secure",
            "domain=boxes.example; Domain=boxes.example",
        ] {
            headers.append(header::SET_COOKIE, value.parse().unwrap());
        }
        confine_cookies(&mut headers);
        let left: Vec<_> = headers.get_all(header::SET_COOKIE).iter().collect();
        assert_eq!(left, ["a=1", "b=belljar_token", "c=1; Path=/; Secure", "domain=boxes.example"]);
    }

    #[test]
    fn a_programs_own_credentials_do() {
        let given = [("authorization", "Bearer theirs"), ("x-api-key", "theirs")];
        assert_eq!(
            prepared(&given, false),
            pairs(&[("authorization", "Bearer theirs"), ("x-api-key", "theirs"), ("x-forwarded-for", "10.1.2.3")])
        );
    }

    #[test]
    fn what_belongs_to_one_connection_stops_here() {
        let given =
            [("connection", "close, X-Mine"), ("x-mine", "1"), ("transfer-encoding", "chunked"), ("te", "trailers"), ("upgrade", "h2c")];
        assert_eq!(prepared(&given, false), pairs(&[("x-forwarded-for", "10.1.2.3")]));
        let websocket = [("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")];
        let expected = [("connection", "upgrade"), ("upgrade", "websocket"), ("x-forwarded-for", "10.1.2.3")];
        assert_eq!(prepared(&websocket, false), pairs(&expected));
    }

    #[test]
    fn only_a_proxy_of_the_operators_is_believed() {
        let given = [("x-forwarded-for", "1.2.3.4")];
        assert_eq!(prepared(&given, false), pairs(&[("x-forwarded-for", "10.1.2.3")]));
        assert_eq!(prepared(&given, true), pairs(&[("x-forwarded-for", "1.2.3.4, 10.1.2.3")]));
    }
}
