//! What all of the dialect's handlers hold.

use std::sync::Arc;

use belljar_core::Service;
use belljar_http::{Front, Gate, Known, Turns};

use crate::routes::Watchers;
use crate::tokens::Tokens;

/// The dialect's parts.
#[derive(Clone)]
pub struct E2bState {
    pub(crate) front: Arc<Front>,
    pub(crate) service: Arc<Service>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) tokens: Tokens,
    /// Below it, `{port}-{id}` is a sandbox's port (49983: its daemon); clients are told it.
    pub(crate) domain: Option<Arc<str>>,
    pub(crate) known: Arc<Known>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) turns: Arc<Turns>,
}

impl E2bState {
    /// A dialect on the same service, keys and domain as the other fronts.
    pub fn new(front: Arc<Front>) -> Self {
        Self {
            service: Arc::clone(&front.service),
            gate: Arc::clone(&front.gate),
            tokens: Tokens::new(Arc::clone(&front.port_tokens)),
            domain: front.domain.as_deref().map(Arc::from),
            known: Arc::new(Known::new(Arc::clone(&front.service))),
            watchers: Arc::default(),
            turns: Arc::default(),
            front,
        }
    }
}
