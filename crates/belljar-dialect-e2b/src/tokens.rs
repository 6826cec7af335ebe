//! The tokens E2B gives out: with a sandbox, one that opens its daemon and one for its ports; with a volume, one for its content. None is stored: the server's own signature says that
//! it made them, and for which sandbox of which project.

use std::sync::Arc;

use belljar_http::{PortGrant, PortTokens};
use belljar_types::{FilesHash, KeyId, ProjectId, SandboxId, Timestamp, VolumeId};
use sha2::{Digest, Sha256};

/// No program can listen on port 0, so that no token for a port is ever one of these.
const NO_PORT: u16 = 0;
/// Stand in for the key that asked: real keys' names begin with `k`, so that no other signed token is one of these.
const DAEMON: &str = "e2bdaemonaccess0";
const TRAFFIC: &str = "e2btrafficaccess";
const VOLUME: &str = "e2bvolumeaccess0";
const FILES: &str = "e2bfilesofbuilds";

/// Makes and checks them.
#[derive(Clone)]
pub(crate) struct Tokens(Arc<PortTokens>);

impl Tokens {
    pub(crate) fn new(signer: Arc<PortTokens>) -> Self {
        Self(signer)
    }

    /// Opens the daemon of a sandbox, for as long as the sandbox lives.
    pub(crate) fn daemon(&self, sandbox: &SandboxId, project: &ProjectId) -> String {
        self.sign(sandbox, project, DAEMON)
    }

    /// Opens the ports of a sandbox whose ports are not public.
    pub(crate) fn traffic(&self, sandbox: &SandboxId, project: &ProjectId) -> String {
        self.sign(sandbox, project, TRAFFIC)
    }

    /// Whose sandbox it is, if the token opens its daemon.
    pub(crate) fn check_daemon(&self, sandbox: &SandboxId, token: &str) -> Option<ProjectId> {
        self.check(sandbox, token, DAEMON)
    }

    /// Whose sandbox it is, if the token opens its ports.
    pub(crate) fn check_traffic(&self, sandbox: &SandboxId, token: &str) -> Option<ProjectId> {
        self.check(sandbox, token, TRAFFIC)
    }

    /// Lets an archive of files for a project's builds be sent, for a while.
    pub(crate) fn files(&self, hash: &FilesHash, project: &ProjectId, expires_at: Timestamp) -> String {
        let key: KeyId = FILES.parse().expect("a key id as written above");
        self.0.sign(&stand_in(hash), NO_PORT, &PortGrant { project: project.clone(), key, expires_at })
    }

    /// Whose archive it is, if the token lets it be sent.
    pub(crate) fn check_files(&self, hash: &FilesHash, token: &str) -> Option<ProjectId> {
        self.check(&stand_in(hash), token, FILES)
    }

    /// Opens the content of a volume, for as long as there is one.
    pub(crate) fn volume(&self, volume: &VolumeId, project: &ProjectId) -> String {
        self.sign(&as_sandbox(volume), project, VOLUME)
    }

    /// Whose volume it is, if the token opens it.
    pub(crate) fn check_volume(&self, volume: &VolumeId, token: &str) -> Option<ProjectId> {
        self.check(&as_sandbox(volume), token, VOLUME)
    }

    fn sign(&self, sandbox: &SandboxId, project: &ProjectId, purpose: &str) -> String {
        let key: KeyId = purpose.parse().expect("a key id as written above");
        self.0.sign(sandbox, NO_PORT, &PortGrant { project: project.clone(), key, expires_at: Timestamp(u64::MAX) })
    }

    fn check(&self, sandbox: &SandboxId, token: &str, purpose: &str) -> Option<ProjectId> {
        let grant = self.0.verify(sandbox, NO_PORT, token)?;
        (grant.key.as_str() == purpose).then_some(grant.project)
    }
}

/// Signatures are for sandboxes; what may be a volume's id may be one's, and the purpose keeps the two apart.
fn as_sandbox(volume: &VolumeId) -> SandboxId {
    volume.as_str().parse().expect("both ids are made of the same")
}

/// Signatures are for sandboxes: an archive has one that nobody else can have, made from its name.
fn stand_in(hash: &FilesHash) -> SandboxId {
    let digits = belljar_types::hex(&Sha256::digest(hash.as_str()));
    format!("f{}", digits.get(..31).unwrap_or_default()).parse().expect("digits are an id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_one_thing_of_one_sandbox() {
        let signer = Arc::new(PortTokens::new([3; 32]));
        let tokens = Tokens::new(Arc::clone(&signer));
        let (sandbox, other) = (SandboxId::random(), SandboxId::random());
        let project: ProjectId = "default".parse().unwrap();
        let token = tokens.daemon(&sandbox, &project);
        assert_eq!(tokens.daemon(&sandbox, &project), token, "the same token at every connect");
        assert_eq!(tokens.check_daemon(&sandbox, &token), Some(project.clone()));
        assert_eq!(tokens.check_daemon(&other, &token), None);
        assert_eq!(tokens.check_traffic(&sandbox, &token), None);
        assert_eq!(tokens.check_daemon(&sandbox, &tokens.traffic(&sandbox, &project)), None);
        let (hash, later): (FilesHash, _) = ("a".repeat(64).parse().unwrap(), Timestamp::now().plus(std::time::Duration::from_secs(60)));
        let files = tokens.files(&hash, &project, later);
        assert_eq!(tokens.check_files(&hash, &files), Some(project.clone()));
        assert_eq!(tokens.check_files(&"b".repeat(64).parse().unwrap(), &files), None);
        assert_eq!(tokens.check_files(&hash, &tokens.files(&hash, &project, Timestamp(1))), None);
        let volume = VolumeId::random();
        let content = tokens.volume(&volume, &project);
        assert_eq!(tokens.check_volume(&volume, &content), Some(project.clone()));
        assert_eq!(tokens.check_volume(&VolumeId::random(), &content), None);
        assert_eq!(tokens.check_daemon(&as_sandbox(&volume), &content), None);
        let for_a_port = PortGrant { project, key: KeyId::random(), expires_at: Timestamp(u64::MAX) };
        assert_eq!(tokens.check_daemon(&sandbox, &signer.sign(&sandbox, 0, &for_a_port)), None);
    }
}
