//! Requests under a port's own host name that are for sandboxes of Daytona's clients: what opens a port for them is in words of their own.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use belljar_http::{acting_for, port_host};
use belljar_types::Scope;

use crate::routes::to_program;
use crate::state::DaytonaState;
use crate::translate::Marks;

/// The header that a token comes in.
const TOKEN: HeaderName = HeaderName::from_static("x-daytona-preview-token");
/// The parameter of an address that has one in it.
pub(crate) const PARAMETER: &str = "DAYTONA_SANDBOX_AUTH_KEY";
/// What the parameter is turned into, so that links within a page need none.
const COOKIE: &str = "daytona_preview_token";

/// What a client has shown for being let in at a port.
pub(crate) enum Shown {
    Token(String),
    /// The same in the address, where the links of a page would lose it.
    InAddress(String),
    /// No token; maybe a key.
    Nothing,
}

impl Shown {
    /// What lets a browser go on without the token in the address. Scripts cannot read it, and no other host is sent it.
    pub(crate) fn cookie(&self, secure: bool) -> Option<HeaderValue> {
        let Self::InAddress(token) = self else { return None };
        let only = if secure { "; Secure" } else { "" };
        HeaderValue::try_from(format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Lax{only}")).ok()
    }
}

/// Sends what is for a port of such a sandbox there, before any path is looked at. To be put around all routes, and around other dialects.
pub fn attend(state: DaytonaState, router: Router) -> Router {
    router.layer(from_fn_with_state(state, by_host))
}

async fn by_host(State(state): State<DaytonaState>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str));
    let Some(port) = state.domain.as_deref().zip(host).and_then(|(domain, host)| port_host(host, domain)) else {
        return next.run(request).await;
    };
    let path = request.uri().path_and_query().map_or("/", axum::http::uri::PathAndQuery::as_str).to_owned();
    if !is_ours(&state, &port.sandbox).await || speaks_another_way(request.headers(), &path) {
        return next.run(request).await;
    }
    to_program(&state, port.sandbox, port.port, request, path, None).await.unwrap_or_else(IntoResponse::into_response)
}

/// Whether Daytona's clients made it.
async fn is_ours(state: &DaytonaState, id: &belljar_types::SandboxId) -> bool {
    let Ok(Some(project)) = state.known.project_of(id).await else { return false };
    let sandbox = state.service.sandbox(&acting_for(project, Scope::Read), id).await;
    sandbox.is_ok_and(|sandbox| Marks::of(&sandbox.metadata).is_some())
}

/// Belljar's own tokens are another front's to judge, whoever made the sandbox.
fn speaks_another_way(headers: &HeaderMap, path: &str) -> bool {
    headers.contains_key(belljar_http::TOKEN_HEADER) || path.contains(belljar_http::TOKEN_PARAMETER)
}

/// Takes what opens a port out of a request: a token that reached the program would open the port to it for as long as it lives.
pub(crate) fn shown_in(headers: &mut HeaderMap, path: &str) -> (Shown, String) {
    let in_header = headers.remove(TOKEN).and_then(|token| token.to_str().map(str::to_owned).ok());
    let in_cookie = take_cookie(headers);
    let (plain, query) = path.split_once('?').unwrap_or((path, ""));
    let mut in_query = None;
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            let found = form_urlencoded::parse(pair.as_bytes()).next().filter(|(name, _)| name == PARAMETER);
            if let Some((_, value)) = &found {
                in_query = Some(value.clone().into_owned());
            }
            found.is_none() && !pair.is_empty()
        })
        .collect();
    let path = if kept.is_empty() { plain.to_owned() } else { format!("{plain}?{}", kept.join("&")) };
    let given = |token: Option<String>| token.filter(|token| !token.is_empty());
    let shown = match (given(in_header), given(in_query), given(in_cookie)) {
        (Some(token), _, _) => Shown::Token(token),
        (None, Some(token), _) => Shown::InAddress(token),
        (None, None, Some(token)) => Shown::Token(token),
        (None, None, None) => Shown::Nothing,
    };
    (shown, path)
}

fn take_cookie(headers: &mut HeaderMap) -> Option<String> {
    let all = headers.get(header::COOKIE)?.to_str().ok()?.to_owned();
    let (ours, others): (Vec<&str>, Vec<&str>) =
        all.split(';').map(str::trim).partition(|pair| pair.split_once('=').is_some_and(|(name, _)| name == COOKIE));
    let token = ours.first().and_then(|pair| pair.split_once('=')).map(|(_, value)| value.to_owned());
    headers.remove(header::COOKIE);
    if let Ok(value) = HeaderValue::from_str(&others.join("; "))
        && !others.is_empty()
    {
        headers.insert(header::COOKIE, value);
    }
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_token_in_the_address_becomes_a_cookie() {
        let cookie = |shown: Shown| shown.cookie(true).map(|cookie| cookie.to_str().unwrap().to_owned());
        assert_eq!(cookie(Shown::Token("t".to_owned())), None);
        assert_eq!(cookie(Shown::Nothing), None);
        let expected = "daytona_preview_token=t; Path=/; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(cookie(Shown::InAddress("t".to_owned())).as_deref(), Some(expected));
        assert_eq!(cookie(Shown::InAddress("t\r\nX: y".to_owned())), None);
    }

    #[test]
    fn what_opens_a_port_does_not_reach_the_program() {
        let headers = |pairs: &[(&'static str, &str)]| -> HeaderMap {
            pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
        };
        for (pairs, path, token, left) in [
            (&[("x-daytona-preview-token", "t1")] as &[_], "/a?b=1", Some("t1"), "/a?b=1"),
            (&[], "/a?DAYTONA_SANDBOX_AUTH_KEY=t2&b=1%202", Some("t2"), "/a?b=1%202"),
            (&[("cookie", "x=1; daytona_preview_token=t3")], "/", Some("t3"), "/"),
            (&[("authorization", "Bearer bj_1")], "/?", None, "/"),
        ] {
            let mut headers = headers(pairs);
            let (shown, path) = shown_in(&mut headers, path);
            let shown = match shown {
                Shown::Token(token) | Shown::InAddress(token) => Some(token),
                Shown::Nothing => None,
            };
            assert_eq!((shown.as_deref(), path.as_str()), (token, left));
            let words = format!("{headers:?}");
            assert!(!words.contains("t1") && !words.contains("t3"), "{words}");
        }
    }
}
