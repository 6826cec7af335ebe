//! How the client reached this server, for links that it is to follow back.

use axum::http::{Extensions, HeaderMap, Uri, header};

use crate::serve::Peer;

/// Scheme and host as the client wrote them; nothing if it named no host.
pub fn origin(headers: &HeaderMap, extensions: &Extensions, uri: &Uri) -> Option<String> {
    let tls = extensions.get::<Peer>().is_some_and(|peer| peer.tls);
    let forwarded = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str))?;
    Some(format!("{}://{host}", if tls || forwarded { "https" } else { "http" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_back_the_way_the_client_came() {
        let of = |headers: &[(&'static str, &str)], uri: &str| {
            let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            origin(&headers, &Extensions::new(), &uri.parse().unwrap())
        };
        assert_eq!(of(&[("host", "a.example:7070")], "/x").as_deref(), Some("http://a.example:7070"));
        assert_eq!(of(&[("host", "a.example"), ("x-forwarded-proto", "https")], "/x").as_deref(), Some("https://a.example"));
        assert_eq!(of(&[], "http://b.example/x").as_deref(), Some("http://b.example"));
        assert_eq!(of(&[], "/x"), None);
    }
}
