//! The certificate authority of one run of one sandbox: it signs for the hosts whose requests are read, for nobody else, and for two days.
//!
//! Its key is in this process's memory and nowhere else. A sandbox that is resumed, and a server that is restarted, has a new one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use belljar_policy::HostName;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints, date_time_ymd,
};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::NoServerSessionStorage;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthorityError {
    #[error("make a certificate")]
    Make(#[from] rcgen::Error),
    #[error("use a certificate")]
    Use(#[from] tokio_rustls::rustls::Error),
}

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    names: Vec<String>,
    hosts: Mutex<Shown>,
}

/// Certificates are kept for this many hosts: below a wildcard a program may ask for as many names as it likes.
const MOST_KEPT: usize = 256;

/// What was shown last. Whoever is being served holds its own; a name that comes back after it had to go gets a new certificate.
#[derive(Default)]
struct Shown {
    by_name: HashMap<HostName, Arc<ServerConfig>>,
    oldest_first: VecDeque<HostName>,
}

impl Shown {
    fn keep(&mut self, name: &HostName, config: &Arc<ServerConfig>) {
        if self.by_name.insert(name.clone(), Arc::clone(config)).is_none() {
            self.oldest_first.push_back(name.clone());
        }
        while self.oldest_first.len() > MOST_KEPT
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.by_name.remove(&oldest);
        }
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Authority {
    /// For these names and those below them.
    pub(crate) fn new(names: Vec<String>) -> Result<Self, AuthorityError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, "Belljar, for one sandbox");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        valid_for_two_days(&mut params);
        let permitted_subtrees = names.iter().cloned().map(GeneralSubtree::DnsName).collect();
        params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Ok(Self { issuer: Issuer::new(params, key), certificate: der, pem, names, hosts: Mutex::default() })
    }

    /// What programs inside have to trust.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Whether it may sign for all of these.
    pub(crate) fn covers(&self, names: &[String]) -> bool {
        names.iter().all(|name| self.names.contains(name))
    }

    /// How to be this host towards the sandbox.
    pub(crate) fn host(&self, name: &HostName) -> Result<Arc<ServerConfig>, AuthorityError> {
        if let Some(known) = self.lock().by_name.get(name) {
            return Ok(Arc::clone(known));
        }
        let mut params = CertificateParams::new(vec![name.as_str().to_owned()])?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        valid_for_two_days(&mut params);
        let key = KeyPair::generate()?;
        let leaf = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider())).with_safe_default_protocol_versions()?;
        let mut config = builder.with_no_client_auth().with_single_cert(vec![leaf.der().clone(), self.certificate.clone()], key)?;
        // One request after the other: what is read is what is sent on.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Its own cache of sessions is larger than the certificate, and a whole handshake with a neighbour costs little.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        let config = Arc::new(config);
        self.lock().keep(name, &config);
        Ok(config)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Midnight, so many days from today, as year, month and day. Clocks inside may be a little off.
fn day(offset: i64) -> (i32, u8, u8) {
    let date = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let date = date.checked_add(jiff::Span::new().days(offset)).unwrap_or(date);
    (i32::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs())
}

fn valid_for_two_days(params: &mut CertificateParams) {
    let ((year, month, yesterday), (last_year, last_month, last_day)) = (day(-1), day(3));
    params.not_before = date_time_ymd(year, month, yesterday);
    params.not_after = date_time_ymd(last_year, last_month, last_day);
}

#[cfg(test)]
mod tests {
    use tokio_rustls::rustls::pki_types::ServerName;
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;
    use crate::inspect::client_config;

    /// Whether a client that trusts `trusted` takes what `signing` shows for `name`.
    async fn shakes_hands(signing: &Authority, trusted: &Authority, name: &str) -> bool {
        let server = signing.host(&HostName::from_wire(name.as_bytes()).unwrap()).unwrap();
        let client = client_config(std::slice::from_ref(&trusted.certificate)).unwrap();
        let (near, far) = tokio::io::duplex(1 << 16);
        let (shown, taken) = tokio::join!(
            TlsAcceptor::from(server).accept(far),
            TlsConnector::from(client).connect(ServerName::try_from(name.to_owned()).unwrap(), near)
        );
        shown.is_ok() && taken.is_ok()
    }

    #[tokio::test]
    async fn nobody_believes_it_about_other_hosts_nor_another_in_its_place() {
        let authority = || Authority::new(vec!["api.test".to_owned()]).unwrap();
        let (mine, theirs) = (authority(), authority());
        assert!(shakes_hands(&mine, &mine, "api.test").await, "the control");
        assert!(!shakes_hands(&mine, &mine, "evil.test").await, "a name it is not for");
        assert!(!shakes_hands(&mine, &mine, "notapi.test").await, "a name that only ends alike");
        assert!(!shakes_hands(&theirs, &mine, "api.test").await, "another sandbox's");
    }

    #[tokio::test]
    async fn a_thousand_names_leave_no_more_than_are_kept() {
        let authority = Authority::new(vec!["api.test".to_owned()]).unwrap();
        for number in 0..1000 {
            let config = authority.host(&HostName::from_wire(format!("n{number}.api.test").as_bytes()).unwrap()).unwrap();
            assert!(!config.session_storage.can_cache(), "and none keeps its sessions");
        }
        let kept = || {
            let shown = authority.lock();
            (shown.by_name.len(), shown.oldest_first.len())
        };
        assert_eq!(kept(), (MOST_KEPT, MOST_KEPT));
        for (name, which) in [("n999.api.test", "the last"), ("n0.api.test", "one that had to go"), ("n0.api.test", "the same again")] {
            assert!(shakes_hands(&authority, &authority, name).await, "{which}");
        }
        assert_eq!(kept(), (MOST_KEPT, MOST_KEPT));
    }
}
