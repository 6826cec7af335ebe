//! `belljar certs`: a certificate for a domain whose names lead here, signed by an authority of the operator's own. For laboratories and networks
//! without a public name; with one, a certificate of a public authority goes into the same two settings.
//!
//! The authority is made once and can sign for this domain alone, so that trusting it costs its users nothing elsewhere. Asked to sign for another
//! one it is left as it is, and nothing is written: no client would take what it signs. The server's certificate is made anew each time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use belljar_linux::private_file;
use belljar_types::Invalid;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints, date_time_ymd,
};
use x509_parser::extensions::GeneralName;

use crate::{Failure, screen};

const AUTHORITY_DAYS: i64 = 3650;
/// Apple's devices refuse more than 825 from an authority of one's own.
const SERVER_DAYS: i64 = 820;

/// Make a certificate for a domain, signed by an authority of your own
///
/// For `https://` and for `{port}-{id}.DOMAIN` without a public certificate. All names below DOMAIN have to lead to this machine (a wildcard entry
/// in your DNS), and clients have to trust the authority. Run it again to renew the certificate; the authority stays.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar certs sandboxes.example.internal --directory /etc/belljar")]
pub(crate) struct Arguments {
    /// The domain whose names, and those below it, lead to the server
    domain: String,
    /// Where the files go: authority.pem and authority.key, server.pem and server.key
    #[arg(long, default_value = "/etc/belljar", value_name = "DIRECTORY")]
    directory: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { domain, directory } = arguments;
    let domain = checked(domain)?;
    std::fs::create_dir_all(directory).map_err(|error| format!("make {}: {error}", directory.display()))?;
    let authority = authority(directory, &domain)?;
    server(directory, &domain, &authority)?;
    let place = directory.display();
    screen::line(&format!(
        "Made {place}/server.pem and server.key for {domain} and *.{domain}.

The server, in its configuration:
  [server]
  domain = \"{domain}\"
  tls_certificate = \"{place}/server.pem\"
  tls_key = \"{place}/server.key\"
  listen = \"0.0.0.0:7443\"                      # if other machines are to reach it; without it they cannot
It is read at the start: systemctl restart belljar

Its clients, which need {place}/authority.pem (it holds no secret):
  export SSL_CERT_FILE=authority.pem            # Python and others; instead of the system's authorities
  export NODE_EXTRA_CA_CERTS=authority.pem      # Node.js
  export BELLJAR_CA_FILE=authority.pem          # belljar itself, with BELLJAR_URL=https://{domain}:7443 and a key in BELLJAR_API_KEY
or, for a whole Debian machine:
  cp authority.pem /usr/local/share/ca-certificates/belljar.crt && update-ca-certificates

Keep {place}/authority.key to yourself: who has it can be any name below {domain} to those who trust it."
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn checked(domain: &str) -> Result<String, Invalid> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let good = domain.len() <= 180 && domain.contains('.') && domain.split('.').all(label) && domain.parse::<std::net::IpAddr>().is_err();
    if good { Ok(domain.to_ascii_lowercase()) } else { Err(Invalid::new("domain", "a name such as sandboxes.example.internal", domain)) }
}

/// The one that is there, or a new one.
fn authority(directory: &Path, domain: &str) -> Result<Issuer<'static, KeyPair>, Failure> {
    let (certificate, key) = (directory.join("authority.pem"), directory.join("authority.key"));
    match (std::fs::read_to_string(&certificate), std::fs::read_to_string(&key)) {
        (Ok(certificate), Ok(key)) => {
            let issuer = Issuer::from_ca_cert_pem(&certificate, KeyPair::from_pem(&key)?)
                .map_err(|error| format!("use the authority in {}: {error}; move it away to have a new one made", directory.display()))?;
            let own =
                domains(&certificate).map_err(|error| format!("read what the authority in {} may sign: {error}", directory.display()))?;
            if !may_sign(&own, domain) {
                let (place, own) = (directory.display(), screen::safe(&own.join(", ")));
                return Err(format!("the authority in {place} signs for {own} and names below it, and not for {domain}; use another --directory for {domain}").into());
            }
            return Ok(issuer);
        }
        (Err(missing), _) | (_, Err(missing)) if missing.kind() == std::io::ErrorKind::NotFound => {}
        (Err(error), _) | (_, Err(error)) => return Err(format!("read the authority in {}: {error}", directory.display()).into()),
    }
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, format!("Belljar, for {domain}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let permitted_subtrees = vec![GeneralSubtree::DnsName(domain.to_owned())];
    params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
    valid_for(&mut params, AUTHORITY_DAYS);
    let pair = KeyPair::generate()?;
    let made = params.self_signed(&pair)?;
    // The key first: a certificate that is there has its key.
    write(&key, &pair.serialize_pem())?;
    write_for_all(&certificate, &made.pem())?;
    Ok(Issuer::new(params, pair))
}

/// The domains that an authority is bound to; none if it is bound to none.
fn domains(certificate: &str) -> Result<Vec<String>, Failure> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes())?;
    let authority = pem.parse_x509()?;
    let permitted = authority.name_constraints()?.and_then(|constraints| constraints.value.permitted_subtrees.as_ref());
    let names = permitted.into_iter().flatten().filter_map(|subtree| match subtree.base {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        _ => None,
    });
    Ok(names.collect())
}

fn may_sign(own: &[String], domain: &str) -> bool {
    let below = |name: &str| domain.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    own.is_empty() || own.iter().any(|name| below(name))
}

fn server(directory: &Path, domain: &str, authority: &Issuer<'_, KeyPair>) -> Result<(), Failure> {
    let mut params = CertificateParams::new(vec![domain.to_owned(), format!("*.{domain}")])?;
    params.distinguished_name.push(DnType::CommonName, domain);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    valid_for(&mut params, SERVER_DAYS);
    let pair = KeyPair::generate()?;
    let made = params.signed_by(&pair, authority).map_err(|error| format!("sign for {domain}: {error}"))?;
    write(&directory.join("server.key"), &pair.serialize_pem())?;
    write_for_all(&directory.join("server.pem"), &made.pem())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    Ok(private_file::write_whole(path, text.as_bytes()).map_err(|error| format!("write {}: {error}", path.display()))?)
}

fn write_for_all(path: &Path, text: &str) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    write(path, text)?;
    let readable = std::fs::Permissions::from_mode(0o644);
    Ok(std::fs::set_permissions(path, readable).map_err(|error| format!("let others read {}: {error}", path.display()))?)
}

/// From yesterday on, because clocks of clients may be a little behind.
fn valid_for(params: &mut CertificateParams, days: i64) {
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let midnight = |offset: i64| {
        let date = today.checked_add(jiff::Span::new().days(offset)).unwrap_or(today);
        date_time_ymd(i32::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    (params.not_before, params.not_after) = (midnight(-1), midnight(days));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_stays_and_the_certificate_is_new() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let make = || {
            run(&Arguments { domain: "Sandboxes.Test".to_owned(), directory: directory.path().to_owned() }).unwrap();
            ["authority.pem", "authority.key", "server.pem", "server.key"].map(|name| std::fs::read(directory.path().join(name)).unwrap())
        };
        let (first, second) = (make(), make());
        assert_eq!(first[..2], second[..2]);
        assert_ne!(first[2..], second[2..]);
        let mode = |name: &str| std::fs::metadata(directory.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("authority.key"), mode("server.key"), mode("server.pem")), (0o600, 0o600, 0o644));
    }

    #[test]
    fn an_authority_is_not_asked_to_sign_for_another_domain() {
        let directory = tempfile::tempdir().unwrap();
        let make = |domain: &str| run(&Arguments { domain: domain.to_owned(), directory: directory.path().to_owned() });
        make("sandboxes.test").unwrap();
        let server = || std::fs::read(directory.path().join("server.pem")).unwrap();
        let before = server();
        for domain in ["other.test", "othersandboxes.test", "test.sandboxes"] {
            let error = make(domain).unwrap_err().to_string();
            assert!(
                error.contains("signs for sandboxes.test and") && error.contains(&format!("another --directory for {domain}")),
                "{error}"
            );
        }
        assert_eq!(server(), before, "what is there goes on working");
        make("more.sandboxes.test").unwrap();
    }

    #[test]
    fn what_is_no_domain_is_refused() {
        for domain in ["", "localhost", "a..b", "-a.b", "*.a.b", "10.0.0.1", "a b.c", "ä.example", &"a.".repeat(100)] {
            assert!(checked(domain).is_err(), "{domain:?}");
        }
        assert_eq!(checked("A.b-c.D").unwrap(), "a.b-c.d");
    }
}
