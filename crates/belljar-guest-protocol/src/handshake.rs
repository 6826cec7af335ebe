//! How both sides prove that they hold the execution's token without showing it.
//!
//! Each proof is an HMAC-SHA256 over a role, the generation, both nonces and both ids: a proof of one side, connection, run or sandbox is worth nothing as
//! a proof of another.

use belljar_types::{ExecutionId, SandboxId, Secret};
use hmac::{Hmac, KeyInit, Mac};
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};
use sha2::Sha256;

use crate::Generations;

/// Random bytes, new for each connection.
pub type Nonce = ByteArray<32>;
/// An HMAC-SHA256.
pub type Proof = ByteArray<32>;

/// The first thing a client says.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ClientHello {
    /// What it speaks.
    #[n(0)]
    pub generations: Generations,
    /// Its nonce.
    #[n(1)]
    pub nonce: Nonce,
}

/// What the agent answers.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AgentHello {
    /// What it speaks.
    #[n(0)]
    pub generations: Generations,
    /// Its nonce.
    #[n(1)]
    pub nonce: Nonce,
    /// Its proof.
    #[n(2)]
    pub proof: Proof,
}

/// The client's proof.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ClientProof {
    /// The proof.
    #[n(0)]
    pub proof: Proof,
}

/// The end of the handshake.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Welcome {
    /// The agent's version.
    #[n(0)]
    pub agent_version: String,
}

/// Makes and checks the proofs of one connection.
#[derive(Debug, Clone, Copy)]
pub struct Proofs<'a> {
    /// The secret.
    pub token: &'a Secret<[u8; 32]>,
    /// The sandbox.
    pub sandbox: &'a SandboxId,
    /// The run.
    pub execution: &'a ExecutionId,
    /// The generation that will be spoken.
    pub generation: u16,
    /// What the client drew.
    pub client_nonce: &'a Nonce,
    /// What the agent drew.
    pub agent_nonce: &'a Nonce,
}

impl Proofs<'_> {
    /// The agent's proof.
    pub fn agent(&self) -> Proof {
        self.mac(b"belljar agent")
    }

    /// The client's proof.
    pub fn client(&self) -> Proof {
        self.mac(b"belljar client")
    }

    /// Whether this is the agent's proof, in constant time.
    pub fn agent_proved(&self, proof: &Proof) -> bool {
        self.start(b"belljar agent").verify_slice(&proof[..]).is_ok()
    }

    /// Whether this is the client's proof, in constant time.
    pub fn client_proved(&self, proof: &Proof) -> bool {
        self.start(b"belljar client").verify_slice(&proof[..]).is_ok()
    }

    fn mac(&self, role: &[u8]) -> Proof {
        <[u8; 32]>::from(self.start(role).finalize().into_bytes()).into()
    }

    fn start(&self, role: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.token.reveal()).expect("HMAC takes keys of any length");
        let generation = self.generation.to_le_bytes();
        let parts: [&[u8]; 6] = [
            role,
            &generation,
            &self.client_nonce[..],
            &self.agent_nonce[..],
            self.sandbox.as_str().as_bytes(),
            self.execution.as_str().as_bytes(),
        ];
        for part in parts {
            // Lengths go in, so that no two different lists of parts are the same bytes.
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_only_for_its_role_nonces_ids_and_token() {
        let (token, other_token) = (Secret::new([1; 32]), Secret::new([2; 32]));
        let (sandbox, other_sandbox) = (SandboxId::random(), SandboxId::random());
        let execution = ExecutionId::random();
        let (a, b) = (Nonce::from([3; 32]), Nonce::from([4; 32]));
        let proofs = Proofs { token: &token, sandbox: &sandbox, execution: &execution, generation: 1, client_nonce: &a, agent_nonce: &b };
        let proof = proofs.agent();
        assert!(proofs.agent_proved(&proof));
        assert!(!proofs.client_proved(&proof), "another role");
        assert!(!Proofs { client_nonce: &b, ..proofs }.agent_proved(&proof), "another nonce");
        assert!(!Proofs { token: &other_token, ..proofs }.agent_proved(&proof), "another token");
        assert!(!Proofs { sandbox: &other_sandbox, ..proofs }.agent_proved(&proof), "another sandbox");
        assert!(!Proofs { generation: 2, ..proofs }.agent_proved(&proof), "another generation");
    }
}
