//! The way from an HTTP request to a program that listens in a sandbox, and back: streams both ways, upgrades (WebSocket) included.
//!
//! The program is hostile, and so may be whoever asks. It gets the request as it came, less what belongs to one connection and less every
//! credential of ours: a key or token that reached a sandbox would open the whole project to it.

mod deadline;
mod headers;
mod parting;
mod pump;

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use belljar_core::{Caller, GuestError, Session};
use belljar_types::{Scope, Timestamp};
use hyper_util::rt::TokioIo;

use crate::auth::unauthorized;
use crate::flushes::Flushes;
use crate::front::Front;
use crate::host_route::PortHost;
use crate::port_token::{PortGrant, SECURE_TOKEN_COOKIE, TOKEN_COOKIE, TOKEN_PARAMETER};
use crate::problem::Problem;
use crate::serve::Peer;

/// How the program sees where the request came in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forwarded {
    /// The path that was taken away from the front, for programs that make links; nothing for host names.
    pub prefix: Option<String>,
    /// When whoever asked may reach it no longer: an answer that is still under way (a stream of events) is broken off then, and so is a connection
    /// that was taken over (a WebSocket).
    pub until: Option<Timestamp>,
}

/// How long a connection outlives the token that opened it: clocks differ, and a last word takes a moment.
const GRACE: Duration = Duration::from_secs(2);
/// Linux's number for "nobody listens there".
const ECONNREFUSED: i32 = 111;

/// Sends a request to a port of a sandbox and gives back the answer. `path` replaces path and query.
pub async fn forward(session: Session, port: u16, mut request: Request, path: &str, forwarded: &Forwarded) -> Result<Response, Problem> {
    let connection = match session.connect(port).await {
        Ok(connection) => connection,
        Err(GuestError::Refused { errno: ECONNREFUSED, .. }) => return Err(port_closed(port)),
        Err(error) => return Err(session.explain(error).await.into()),
    };
    let peer = request.extensions().get::<Peer>().copied();
    let flushes = request.extensions().get::<Flushes>().cloned();
    let upgrade = headers::upgrade_of(request.headers());
    let client = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    let (mut parts, body) = request.into_parts();
    headers::prepare(&mut parts.headers, parts.uri.authority(), peer.as_ref(), forwarded, upgrade.as_ref());
    parts.uri = path.parse::<Uri>().map_err(|_| Problem::invalid("path", "path: this is no path that can be sent on"))?;
    parts.version = axum::http::Version::HTTP_11;
    parts.extensions = axum::http::Extensions::new();

    let left = forwarded.until.map(|until| Timestamp::now().until(until) + GRACE);
    let unclear = |_| bad_answer(port);
    let stream = pump::pump(connection, session);
    // Some programs look for `Host` and not for `host`, as HTTP/1.1 clients mostly write it.
    let mut client_of_program = hyper::client::conn::http1::Builder::new();
    let handshake = client_of_program.title_case_headers(true).handshake(TokioIo::new(stream));
    let (mut sender, driver) = handshake.await.map_err(unclear)?;
    tokio::spawn(driver.with_upgrades());
    let mut answer = sender.send_request(Request::from_parts(parts, deadline::bounded(body, left))).await.map_err(unclear)?;

    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        let Some(client) = client else { return Err(bad_answer(port)) };
        let program = hyper::upgrade::on(&mut answer);
        tokio::spawn(async move {
            if let (Ok(client), Ok(program)) = tokio::join!(client, program) {
                let (mut client, mut program) = (TokioIo::new(client), TokioIo::new(program));
                // Either side may cut the line at any time; that is its end.
                let both = tokio::io::copy_bidirectional(&mut client, &mut program);
                match left {
                    Some(left) => drop(tokio::time::timeout(left, both).await),
                    None => drop(both.await),
                }
            }
        });
        headers::clean_upgrade(answer.headers_mut());
    } else {
        headers::clean_answer(answer.headers_mut());
    }
    headers::confine_cookies(answer.headers_mut());
    Ok(answer.map(|body| deadline::bounded(parting::parting(Body::new(body), flushes), left)).into_response())
}

fn port_closed(port: u16) -> Problem {
    Problem::new(
        StatusCode::BAD_GATEWAY,
        "port_closed",
        format!("nothing in the sandbox listens on port {port}; start the program, then try again"),
    )
}

fn bad_answer(port: u16) -> Problem {
    let detail = format!("the program on port {port} closed the connection or answered something that is not HTTP");
    Problem::new(StatusCode::BAD_GATEWAY, "port_bad_answer", detail)
}

/// Answers a request that came in under a port's own host name.
pub(crate) async fn answer_for_port(front: &Front, port: &PortHost, request: Request) -> Result<Response, Problem> {
    let query = request.uri().query();
    let in_query = query.and_then(|query| parameter(query, TOKEN_PARAMETER));
    let shown = headers::tokens(request.headers());
    let by_token = by_token(in_query.as_deref(), &shown, |token| front.port_tokens.verify(&port.sandbox, port.port, token))?;
    let (caller, until, into) = match by_token {
        Some(found) => {
            let grant = found.grant;
            (Caller { key: grant.key, project: grant.project, scopes: [Scope::Use].into() }, Some(grant.expires_at), found.of_query)
        }
        None => ((*front.gate.admit(request.headers()).await?.0).clone(), None, None),
    };
    let path = without_parameter(request.uri(), TOKEN_PARAMETER);
    if let Some(token) = into
        && (request.method() == Method::GET || request.method() == Method::HEAD)
        && headers::upgrade_of(request.headers()).is_none()
    {
        return Ok(into_cookie(&request, &path, token));
    }
    let session = front.service.open(&caller, &port.sandbox).await?;
    forward(session, port.port, request, &path, &Forwarded { until, ..Forwarded::default() }).await
}

/// What one of the tokens that were shown stands for.
#[derive(Debug)]
struct Found<'a> {
    grant: PortGrant,
    /// The address's token, if it is that one that is good: no other may become a cookie.
    of_query: Option<&'a str>,
}

/// The first good token: the address's, which is newer than any cookie, or else one of the others. Nothing if none was shown.
fn by_token<'a>(
    in_query: Option<&'a str>,
    others: &[&str],
    verify: impl Fn(&str) -> Option<PortGrant>,
) -> Result<Option<Found<'a>>, Problem> {
    if in_query.is_none() && others.is_empty() {
        return Ok(None);
    }
    let of_query = in_query.and_then(|token| Some(Found { grant: verify(token)?, of_query: Some(token) }));
    let found = of_query.or_else(|| others.iter().find_map(|token| Some(Found { grant: verify(token)?, of_query: None })));
    let wrong = || unauthorized("the token is not for this port, or it has expired; ask for a new one");
    found.map(Some).ok_or_else(wrong)
}

/// A token in an address would end up in histories and logs: it moves into a cookie that scripts cannot read.
fn into_cookie(request: &Request, path: &str, token: &str) -> Response {
    let secure = request.extensions().get::<Peer>().is_some_and(|peer| peer.tls || peer.behind_proxy);
    let (name, only) = if secure { (SECURE_TOKEN_COOKIE, "; Secure") } else { (TOKEN_COOKIE, "") };
    let cookie = format!("{name}={token}; Path=/; HttpOnly; SameSite=Lax{only}");
    (
        StatusCode::SEE_OTHER,
        [(header::LOCATION, path.to_owned()), (header::SET_COOKIE, cookie), (header::CACHE_CONTROL, "no-store".to_owned())],
    )
        .into_response()
}

fn parameter(query: &str, name: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Path and query without one parameter; the rest as it was written.
fn without_parameter(uri: &Uri, name: &str) -> String {
    let kept = uri.query().map(|query| {
        let is_other = |pair: &&str| form_urlencoded::parse(pair.as_bytes()).next().is_none_or(|(key, _)| key != name);
        query.split('&').filter(is_other).collect::<Vec<_>>().join("&")
    });
    // `//host/` would be taken for another host by whoever follows it.
    let path = format!("/{}", uri.path().trim_start_matches('/'));
    match kept {
        Some(kept) if !kept.is_empty() => format!("{path}?{kept}"),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_token_counts_wherever_a_wrong_one_is_and_no_wrong_one_becomes_a_cookie() {
        let grant =
            |name: &str| PortGrant { project: name.parse().unwrap(), key: belljar_types::KeyId::random(), expires_at: Timestamp(1) };
        let verify = |token: &str| token.strip_prefix("good-").map(grant);
        let none: &[&str] = &[];
        for (in_query, others, expected) in [
            (None, none, Ok(None)),
            (Some("good-a"), none, Ok(Some(("a", Some("good-a"))))),
            (Some("good-a"), &["stale", ""], Ok(Some(("a", Some("good-a"))))),
            (Some("good-a"), &["good-b"], Ok(Some(("a", Some("good-a"))))),
            (Some("junk; Domain=example"), &["good-b"], Ok(Some(("b", None)))),
            (None, &["stale", "good-b"], Ok(Some(("b", None)))),
            (Some("junk"), &["stale"], Err(401)),
            (Some("junk"), none, Err(401)),
            (None, &["stale"], Err(401)),
        ] {
            let found = by_token(in_query, others, verify);
            let seen = found.as_ref().map(|found| found.as_ref().map(|found| (found.grant.project.as_str(), found.of_query)));
            assert_eq!(seen.map_err(|problem| problem.status().as_u16()), expected, "{in_query:?} {others:?}");
        }
    }

    #[test]
    fn a_token_is_taken_out_of_the_address_and_nothing_else_is() {
        let without = |uri: &str| without_parameter(&uri.parse().unwrap(), "belljar_token");
        assert_eq!(without("/a?belljar_token=x"), "/a");
        assert_eq!(without("/a?q=1%202&belljar_token=x&r"), "/a?q=1%202&r");
        assert_eq!(without("/a?belljar%5Ftoken=x&r=1"), "/a?r=1");
        assert_eq!(without("/a?q"), "/a?q");
        assert_eq!(without("//evil.example/a?belljar_token=x"), "/evil.example/a");
    }
}
