//! Proving to a registry who we are: the bearer token dance of the distribution protocol, or plain credentials.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ureq::Body;
use ureq::http::{Response, header};

use super::RegistryError;
use super::client::Client;

const TOKEN_MAX: u64 = 64 << 10;
const CHALLENGE_SHOWN: usize = 200;

/// Answers the challenge in a refusal: what to send as `Authorization`.
pub(super) fn prove(client: &Client<'_>, refusal: &Response<Body>) -> Result<String, RegistryError> {
    let challenges = refusal.headers().get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let challenges: Vec<&str> = challenges.collect();
    for challenge in &challenges {
        let (scheme, parameters) = challenge.split_once(' ').unwrap_or((challenge, ""));
        if scheme.eq_ignore_ascii_case("bearer") {
            return token(client, parameters);
        }
        if scheme.eq_ignore_ascii_case("basic") {
            let denied = || RegistryError::Denied { what: client.reference.repository.clone(), host: client.host() };
            return basic(client).ok_or_else(denied);
        }
    }
    let challenge = challenges.join(", ").chars().take(CHALLENGE_SHOWN).collect();
    Err(RegistryError::Challenge { host: client.host(), challenge })
}

fn basic(client: &Client<'_>) -> Option<String> {
    let credentials = client.options.credentials.as_ref()?;
    Some(format!("Basic {}", STANDARD.encode(format!("{}:{}", credentials.username, credentials.password.reveal()))))
}

fn token(client: &Client<'_>, parameters: &str) -> Result<String, RegistryError> {
    let unusable = || RegistryError::Token { host: client.host() };
    let parameters = parse_parameters(parameters);
    let find = |name: &str| parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let realm = find("realm").ok_or_else(unusable)?;
    // Credentials and tokens are as good as the line they travel on.
    if !(realm.starts_with("https://") || client.scheme == "http" && realm.starts_with("http://")) {
        return Err(unusable());
    }
    let scope = find("scope").map_or_else(|| format!("repository:{}:pull", client.reference.repository), str::to_owned);
    let mut request = client.agent.get(realm).query("scope", scope);
    if let Some(service) = find("service") {
        request = request.query("service", service);
    }
    if let Some(basic) = basic(client) {
        request = request.header(header::AUTHORIZATION, basic);
    }
    let response = request.call().map_err(|source| client.transport("a token", source))?;
    if !response.status().is_success() {
        return Err(RegistryError::Denied { what: client.reference.repository.clone(), host: client.host() });
    }
    let mut text = Vec::new();
    response.into_body().into_reader().take(TOKEN_MAX).read_to_end(&mut text).map_err(|_| unusable())?;
    let answer: TokenAnswer = serde_json::from_slice(&text).map_err(|_| unusable())?;
    let token = answer.token.or(answer.access_token).filter(|token| !token.is_empty()).ok_or_else(unusable)?;
    if token.bytes().all(|b| b.is_ascii_graphic()) { Ok(format!("Bearer {token}")) } else { Err(unusable()) }
}

#[derive(serde::Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

/// `key="value",key=value`; a quoted value may hold commas.
fn parse_parameters(text: &str) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    let mut rest = text.trim_start();
    while let Some((key, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.find(',').map_or((after, ""), |at| after.split_at(at)),
        };
        parameters.push((key.trim().to_ascii_lowercase(), value.to_owned()));
        rest = after.trim_start_matches([',', ' ']);
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_with_commas_in_quotes_are_understood() {
        let found = parse_parameters(r#"realm="https://auth.invalid/token",service=reg, scope="repository:a/b:pull,push""#);
        let expected = [("realm", "https://auth.invalid/token"), ("service", "reg"), ("scope", "repository:a/b:pull,push")];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn broken_challenges_end() {
        assert_eq!(parse_parameters("realm=\"unclosed"), [("realm".to_owned(), "unclosed".to_owned())]);
        assert_eq!(parse_parameters(",,,"), []);
        assert_eq!(parse_parameters("="), [(String::new(), String::new())]);
    }
}
