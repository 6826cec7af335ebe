//! What all of the dialect's handlers hold.

use std::sync::Arc;

use belljar_core::Service;
use belljar_http::{Front, Gate, Known, PortTokens, Turns};

use crate::names::Names;
use crate::routes::Terminals;

/// The dialect's parts.
#[derive(Clone)]
pub struct DaytonaState {
    pub(crate) service: Arc<Service>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) port_tokens: Arc<PortTokens>,
    /// Below it, `{port}-{id}` is a sandbox's port; clients are told it.
    pub(crate) domain: Option<Arc<str>>,
    pub(crate) known: Arc<Known>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) names: Arc<Names>,
    pub(crate) terminals: Arc<Terminals>,
}

impl DaytonaState {
    /// A dialect on the same service, keys and domain as the other fronts.
    pub fn new(front: &Front) -> Self {
        Self {
            service: Arc::clone(&front.service),
            gate: Arc::clone(&front.gate),
            port_tokens: Arc::clone(&front.port_tokens),
            domain: front.domain.as_deref().map(Arc::from),
            known: Arc::new(Known::new(Arc::clone(&front.service))),
            turns: Arc::default(),
            names: Arc::default(),
            terminals: Arc::default(),
        }
    }
}
