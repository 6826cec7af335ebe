//! What all connections share. One thread, so plain cells: nothing here is locked.

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;

use belljar_guest_protocol::BootConfig;
use belljar_types::{ExecutionId, SandboxId, Secret};

use crate::keep::Wishes;
use crate::process::Processes;
use crate::users::UserPolicy;

/// Who the agent is; changes when the sandbox is restored or forked.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) sandbox: SandboxId,
    pub(crate) execution: ExecutionId,
    pub(crate) token: Secret<[u8; 32]>,
    pub(crate) gateway: Ipv4Addr,
}

/// The agent.
pub(crate) struct Agent {
    pub(crate) identity: RefCell<Identity>,
    pub(crate) users: UserPolicy,
    pub(crate) processes: Rc<Processes>,
    pub(crate) wishes: Rc<Wishes>,
}

impl Agent {
    pub(crate) fn new(boot: BootConfig) -> Rc<Self> {
        let users = UserPolicy { default: boot.default_user, privilege: boot.privilege };
        let identity = Identity { sandbox: boot.sandbox, execution: boot.execution, token: boot.token, gateway: boot.gateway };
        let processes = Processes::new(users.clone(), boot.env, boot.workdir);
        Rc::new(Self { identity: RefCell::new(identity), users, processes, wishes: Rc::default() })
    }
}

/// The agent's version, as told to clients.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
