//! One sandbox at the boundary: its policy at the moment, the names it knows, what it used. Found by the address its packets come from, which the
//! firewall has checked against the cable they came on.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use belljar_policy::{Compiled, HostName};
use belljar_ports::Toll;
use belljar_types::{ProjectId, SandboxId, Traffic, escape_untrusted};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::authority::{Authority, AuthorityError};
use crate::book::Book;
use crate::counts::{Counts, Direction};
use crate::pace::Pace;
use crate::{Event, EventKind};

/// Connections at one time when the policy does not say.
const CONNECTIONS: u32 = 256;
/// New names below wildcards in a minute when the policy does not say.
const NAMES_PER_MINUTE: u32 = 60;

/// A sandbox that is attached.
#[derive(Debug)]
pub struct Session {
    pub(crate) sandbox: SandboxId,
    pub(crate) project: ProjectId,
    authority: Mutex<Option<Arc<Authority>>>,
    pub(crate) gateway_address: Ipv4Addr,
    policy: watch::Sender<Arc<Compiled>>,
    book: Mutex<Book>,
    pub(crate) counts: Counts,
    toll: Arc<dyn Toll>,
    /// Whether the toll ever let less go than was asked for.
    out_of_budget: AtomicBool,
    pace_out: Pace,
    pace_in: Pace,
    /// Cancelled when the sandbox is detached: every connection ends.
    pub(crate) over: CancellationToken,
    events: mpsc::Sender<Event>,
}

impl Session {
    pub(crate) fn new(
        sandbox: SandboxId,
        project: ProjectId,
        gateway_address: Ipv4Addr,
        policy: Arc<Compiled>,
        toll: Arc<dyn Toll>,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self {
            sandbox,
            project,
            authority: Mutex::default(),
            gateway_address,
            policy: watch::Sender::new(policy),
            book: Mutex::default(),
            counts: Counts::default(),
            toll,
            out_of_budget: AtomicBool::new(false),
            pace_out: Pace::new(),
            pace_in: Pace::new(),
            over: CancellationToken::new(),
            events,
        }
    }

    /// What holds at the moment.
    pub(crate) fn policy(&self) -> Arc<Compiled> {
        Arc::clone(&self.policy.borrow())
    }

    /// Wakes whoever has to look at the policy again.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Compiled>> {
        self.policy.subscribe()
    }

    pub(crate) fn change(&self, policy: Arc<Compiled>) {
        self.policy.send_replace(policy);
    }

    /// Who signs for the hosts whose TLS is read.
    pub(crate) fn authority(&self) -> Option<Arc<Authority>> {
        self.authority.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes sure that there is an authority for these names; a new one if there was none for all of them.
    pub(crate) fn renew_authority(&self, names: Vec<String>) -> Result<Option<Arc<Authority>>, AuthorityError> {
        let mut authority = self.authority.lock().unwrap_or_else(PoisonError::into_inner);
        if names.is_empty() || authority.as_ref().is_some_and(|known| known.covers(&names)) {
            return Ok(authority.clone());
        }
        *authority = Some(Arc::new(Authority::new(names)?));
        Ok(authority.clone())
    }

    /// What it used so far.
    pub fn traffic(&self) -> Traffic {
        self.counts.traffic()
    }

    /// The address that stands for an allowed name; `None` if there were too many new names.
    pub(crate) fn address_of(&self, name: &HostName) -> Option<Ipv4Addr> {
        let policy = self.policy();
        let written_out = policy.exact_names().binary_search_by(|known| (**known).cmp(name.as_str())).is_ok();
        let most = match policy.limits().names_per_minute {
            _ if written_out => None,
            // Who may reach everybody needs no names to tell anybody anything.
            None if policy.allows_the_rest() => None,
            most => Some(most.unwrap_or(NAMES_PER_MINUTE)),
        };
        let found = self.book().address(name, most);
        if found.is_none() {
            self.tell(
                EventKind::TooManyNames,
                name.as_str(),
                53,
                "network.limits.names_per_minute",
                "too many different names in a minute",
            );
        }
        found
    }

    /// The name that an address stands for.
    pub(crate) fn name_of(&self, address: Ipv4Addr) -> Option<HostName> {
        let policy = self.policy();
        self.book().name(address, policy.exact_names())
    }

    /// Takes a place for one more connection, if there is one.
    pub(crate) fn connection(self: &Arc<Self>) -> Option<Place> {
        let most = self.policy().limits().connections.unwrap_or(CONNECTIONS);
        let live = &self.counts.live;
        live.try_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now < most).then_some(now + 1)).ok()?;
        Some(Place { session: Arc::clone(self) })
    }

    /// Counts bytes and waits until they may go. Says how many of them may: fewer if a limit or a budget is reached.
    pub(crate) async fn spend(&self, direction: Direction, bytes: u64) -> u64 {
        let limits = *self.policy().limits();
        let (limit, pace) = match direction {
            Direction::Out => (limits.sent, &self.pace_out),
            Direction::In => (limits.received, &self.pace_in),
        };
        if !self.counts.add(direction, bytes, limit.map(|size| size.0)) {
            return 0;
        }
        let paid = match direction {
            Direction::Out => self.toll.leaving(bytes),
            Direction::In => self.toll.entering(bytes),
        };
        if paid < bytes {
            self.counts.take_back(direction, bytes - paid);
            self.out_of_budget.store(true, Ordering::Relaxed);
        }
        pace.take(paid, limits.bytes_per_second.map(|size| size.0)).await;
        paid
    }

    /// What ended a connection whose bytes may not go on: the rule, and in words.
    pub(crate) fn spent_by(&self) -> (&'static str, &'static str) {
        if self.out_of_budget.load(Ordering::Relaxed) {
            ("budget", "a budget of bytes is used up")
        } else {
            ("network.limits", "its bytes are used up")
        }
    }

    /// Whether a limit of bytes is used up.
    pub(crate) fn is_spent(&self) -> bool {
        let policy = self.policy();
        let limits = policy.limits();
        self.counts.spent(limits.sent.map(|size| size.0), limits.received.map(|size| size.0))
    }

    /// Tells whoever keeps a record. A record keeper that is too slow loses events, never packets.
    pub(crate) fn tell(&self, kind: EventKind, destination: &str, port: u16, rule: &str, reason: &str) {
        if matches!(kind, EventKind::Denied | EventKind::RequestDenied | EventKind::NameDenied) {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
        }
        let event = Event {
            project: self.project.clone(),
            sandbox: self.sandbox.clone(),
            kind,
            destination: escape_untrusted(destination.as_bytes()),
            port,
            rule: rule.to_owned(),
            reason: escape_untrusted(reason.as_bytes()),
        };
        let _full = self.events.try_send(event);
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of a sandbox's connections.
#[derive(Debug)]
pub(crate) struct Place {
    session: Arc<Session>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.session.counts.live.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All that are attached.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: RwLock<Attached>,
}

#[derive(Debug, Default)]
struct Attached {
    by_address: HashMap<Ipv4Addr, Arc<Session>>,
    addresses: HashMap<SandboxId, Ipv4Addr>,
}

impl Sessions {
    /// By the address that packets come from.
    pub(crate) fn find(&self, address: Ipv4Addr) -> Option<Arc<Session>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).by_address.get(&address).cloned()
    }

    pub(crate) fn of(&self, sandbox: &SandboxId) -> Option<(Ipv4Addr, Arc<Session>)> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let address = *all.addresses.get(sandbox)?;
        Some((address, Arc::clone(all.by_address.get(&address)?)))
    }

    /// Whoever had the address before is over, and so is what the sandbox had before.
    pub(crate) fn insert(&self, address: Ipv4Addr, session: Arc<Session>) {
        self.remove(&session.sandbox);
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.addresses.insert(session.sandbox.clone(), address);
        if let Some(before) = all.by_address.insert(address, session) {
            before.over.cancel();
            all.addresses.remove(&before.sandbox);
        }
    }

    /// Ends everything.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.all.write().unwrap_or_else(PoisonError::into_inner));
        all.by_address.values().for_each(|session| session.over.cancel());
    }

    pub(crate) fn remove(&self, sandbox: &SandboxId) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = all.addresses.remove(sandbox)
            && let Some(session) = all.by_address.remove(&address)
        {
            session.over.cancel();
        }
    }
}
