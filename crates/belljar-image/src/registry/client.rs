//! HTTP to a registry: encrypted unless it is this machine, patient with hiccups, careful whom it shows a token.

use std::fs;
use std::sync::Mutex;
use std::time::Duration;

use ureq::http::{Response, StatusCode, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

use super::{PullOptions, Reference, RegistryError, auth};

const ATTEMPTS: u32 = 4;
const REDIRECTS_MAX: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
/// Where distributions keep the certificates that this machine trusts, the operator's own included.
const TRUSTED: [&str; 3] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];

/// A conversation with one registry about one repository.
pub(super) struct Client<'a> {
    pub(super) agent: Agent,
    pub(super) reference: &'a Reference,
    pub(super) options: &'a PullOptions,
    /// `http` or `https`.
    pub(super) scheme: &'static str,
    authorization: Mutex<Option<String>>,
}

impl<'a> Client<'a> {
    pub(super) fn new(reference: &'a Reference, options: &'a PullOptions) -> Self {
        let roots = TRUSTED.iter().find_map(|path| fs::read(path).ok()).map_or(RootCerts::WebPki, |pem| {
            let certificates = parse_pem(&pem).filter_map(Result::ok).filter_map(|item| match item {
                PemItem::Certificate(certificate) => Some(certificate),
                _ => None,
            });
            RootCerts::new_with_certs(&certificates.collect::<Vec<_>>())
        });
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Redirects are followed by hand: they must not lose encryption, nor carry the token along.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(SILENCE_TIMEOUT))
            .timeout_per_read(Some(SILENCE_TIMEOUT))
            .user_agent(concat!("belljar/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build();
        let scheme = if options.insecure || reference.is_loopback() { "http" } else { "https" };
        Self { agent: config.into(), reference, options, scheme, authorization: Mutex::new(None) }
    }

    pub(super) fn host(&self) -> String {
        self.reference.host.clone()
    }

    /// Asks for `path` below the repository until there is an answer; proves who we are if asked to.
    pub(super) fn get(&self, path: &str, accept: &str, what: &str) -> Result<Response<Body>, RegistryError> {
        let url = format!("{}://{}/v2/{}/{path}", self.scheme, self.reference.host, self.reference.repository);
        let mut proved = false;
        let mut attempt = 1;
        loop {
            let answer = self.follow(&url, accept, what);
            match &answer {
                Ok(response) if response.status() == StatusCode::UNAUTHORIZED && !proved => {
                    proved = true;
                    let authorization = auth::prove(self, response)?;
                    *self.authorization.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(authorization);
                    continue;
                }
                Ok(response) if !is_temporary(response.status()) => {}
                Err(error) if !matches!(error, RegistryError::Transport { .. }) => {}
                _ if attempt < ATTEMPTS => {
                    pause(attempt);
                    attempt += 1;
                    continue;
                }
                _ => {}
            }
            return self.judge(answer?, what);
        }
    }

    fn judge(&self, response: Response<Body>, what: &str) -> Result<Response<Body>, RegistryError> {
        let (what, host) = (what.to_owned(), self.host());
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::NOT_FOUND => Err(RegistryError::NotFound { what, host }),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(RegistryError::Denied { what, host }),
            status => Err(RegistryError::Status { what, host, status: status.as_u16() }),
        }
    }

    fn follow(&self, url: &str, accept: &str, what: &str) -> Result<Response<Body>, RegistryError> {
        let mut url = url.to_owned();
        let home = origin(&url).to_owned();
        let failed = |why| RegistryError::Redirect { what: what.to_owned(), host: self.host(), why };
        for _ in 0..=REDIRECTS_MAX {
            let mut request = self.agent.get(&url).header(header::ACCEPT, accept);
            let authorization = self.authorization.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
            if let Some(authorization) = authorization.filter(|_| origin(&url) == home) {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            let response = request.call().map_err(|source| self.transport(what, source))?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
            let location = location.ok_or_else(|| failed("without saying where to"))?;
            url = if location.starts_with('/') { format!("{}{location}", origin(&url)) } else { location.to_owned() };
            if !url.starts_with("https://") && (self.scheme == "https" || !url.starts_with("http://")) {
                return Err(failed("to a place without encryption"));
            }
        }
        Err(failed("too often"))
    }

    pub(super) fn transport(&self, what: &str, source: ureq::Error) -> RegistryError {
        RegistryError::Transport { what: what.to_owned(), host: self.host(), source: Box::new(source) }
    }
}

fn is_temporary(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

/// Gives the registry a moment, longer each time.
pub(super) fn pause(attempt: u32) {
    std::thread::sleep(Duration::from_millis(200 << attempt.min(5)));
}

/// Scheme, host and port of a URL.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url.get(start..).and_then(|rest| rest.find(['/', '?', '#'])).map_or(url, |end| url.get(..start + end).unwrap_or(url))
}
