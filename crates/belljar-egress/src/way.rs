//! One connection, from the decision to its end. All entrances come here; nothing else dials.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use belljar_policy::{HttpRequest, Request, Scheme, Verdict, decide};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use crate::EventKind;
use crate::dial::{To, dial};
use crate::dns::Resolver;
use crate::door::Fuse;
use crate::hello::read_hello;
use crate::http;
use crate::inspect;
use crate::prefixed::Prefixed;
use crate::relay::{Ended, Stream, relay};
use crate::secrets::{self, SecretKeeper};
use crate::session::Session;
use crate::uplink::Uplink;

/// How long a client may take for the first message of TLS.
const HELLO: Duration = Duration::from_secs(5);

/// What all connections share on the way out.
pub(crate) struct Outside {
    pub(crate) resolver: Resolver,
    pub(crate) uplink: Uplink,
    /// How hosts are recognised whose TLS is read.
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) secrets: Option<Arc<dyn SecretKeeper>>,
}

/// Where one connection goes.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) session: Arc<Session>,
    pub(crate) outside: Arc<Outside>,
    pub(crate) to: To,
    pub(crate) port: u16,
}

/// What was decided about a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allow: bool,
    pub(crate) inspect: bool,
    pub(crate) scheme: Scheme,
    pub(crate) rule: String,
    pub(crate) reason: String,
}

impl Decision {
    fn of(verdict: &Verdict<'_>) -> Self {
        Self { allow: verdict.allow, inspect: verdict.inspect, scheme: verdict.scheme, rule: verdict.rule(), reason: verdict.to_string() }
    }
}

impl Way {
    /// Asks the policy as it is now.
    pub(crate) fn decide(&self, http: Option<HttpRequest<'_>>) -> Decision {
        let policy = self.session.policy();
        let decision = Decision::of(&decide(&policy, &Request { http, ..Request::connection(self.to.destination(), self.port) }));
        Decision { inspect: decision.inspect || secrets::concern(&policy, &self.to, self.port), ..decision }
    }

    pub(crate) fn tell(&self, kind: EventKind, rule: &str, reason: &str) {
        self.session.tell(kind, &self.to.to_string(), self.port, rule, reason);
    }

    /// Decides about the connection and tells so.
    pub(crate) fn admit(&self) -> Decision {
        let mut decision = self.decide(None);
        if decision.allow && self.session.is_spent() {
            decision = Decision {
                allow: false,
                rule: "network.limits".to_owned(),
                reason: "denied by network.limits: its bytes are used up".to_owned(),
                ..decision
            };
        }
        if decision.allow {
            self.session.counts.connections.fetch_add(1, Ordering::Relaxed);
        }
        self.tell(if decision.allow { EventKind::Allowed } else { EventKind::Denied }, &decision.rule, &decision.reason);
        decision
    }

    /// Decides, and carries the connection to its end. `false` if it has to be broken off.
    pub(crate) async fn go(&self, stream: TcpStream, fuse: &Fuse) -> bool {
        let decision = self.admit();
        decision.allow && self.go_on(stream, &decision, decision.scheme, fuse).await
    }

    /// Carries a connection that is allowed, until it ends or is not allowed any more.
    pub(crate) async fn go_on(&self, stream: impl Stream + 'static, decision: &Decision, spoken: Scheme, fuse: &Fuse) -> bool {
        let whole = tokio::select! {
            whole = self.carry(Box::new(stream), decision, spoken) => return whole,
            () = self.session.over.cancelled() => "the sandbox is gone or stands still",
            () = self.overruled(decision) => "its policy changed",
        };
        // Set before the streams are dropped, which happens on return.
        fuse.blow();
        self.tell(EventKind::Cut, &decision.rule, whole);
        false
    }

    /// Returns when the connection would not be allowed as it is.
    async fn overruled(&self, before: &Decision) {
        let mut changes = self.session.changes();
        loop {
            let now = self.decide(None);
            if !now.allow || now.inspect != before.inspect || now.scheme != before.scheme {
                return;
            }
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    async fn carry(&self, stream: Box<dyn Stream>, decision: &Decision, spoken: Scheme) -> bool {
        let is_name = matches!(self.to, To::Name(_));
        match spoken {
            Scheme::Http if is_name => http::serve(self, stream, http::Upstream::Plain).await,
            Scheme::Https if is_name => self.carry_tls(stream, decision).await,
            _ => self.pass_through(stream).await,
        }
    }

    /// TLS must ask for the very name that was looked up, in the open.
    async fn carry_tls(&self, mut stream: Box<dyn Stream>, decision: &Decision) -> bool {
        let (hello, read) = match timeout(HELLO, read_hello(&mut stream)).await {
            Ok(Ok(read)) => read,
            Ok(Err(problem)) => return self.refuse(decision, &problem.to_string()),
            Err(_) => return self.refuse(decision, "its first message took too long"),
        };
        if hello.name.as_ref().map(ToString::to_string) != Some(self.to.to_string()) {
            let said = hello.name.map_or_else(|| "no name".to_owned(), |name| name.to_string());
            return self.refuse(decision, &format!("TLS asks for {said}, and the connection is to {}", self.to));
        }
        let stream = Box::new(Prefixed::new(read, stream));
        if decision.inspect {
            return match (&self.to, self.session.authority()) {
                (To::Name(name), Some(authority)) => inspect::serve(self, name, &authority, stream).await,
                _ => self.refuse(decision, "requests inside TLS cannot be read here"),
            };
        }
        if hello.encrypted {
            return self.refuse(decision, "TLS hides another name (encrypted client hello)");
        }
        self.pass_through(stream).await
    }

    async fn pass_through(&self, stream: Box<dyn Stream>) -> bool {
        let Some(upstream) = self.dial().await else { return false };
        self.settle(relay(&self.session, stream, upstream).await)
    }

    pub(crate) fn settle(&self, ended: Ended) -> bool {
        if ended == Ended::Spent {
            let (rule, reason) = self.session.spent_by();
            self.tell(EventKind::Cut, rule, reason);
        }
        ended == Ended::Done
    }

    /// The connection to the outside; tells why there is none.
    pub(crate) async fn dial(&self) -> Option<TcpStream> {
        self.try_dial().await.ok()
    }

    pub(crate) async fn try_dial(&self) -> Result<TcpStream, String> {
        let policy = self.session.policy();
        dial(&self.outside, &policy, &self.to, self.port).await.map_err(|failure| {
            let reason = failure.to_string();
            self.tell(EventKind::Unreachable, "dial", &reason);
            reason
        })
    }

    fn refuse(&self, decision: &Decision, reason: &str) -> bool {
        self.tell(EventKind::Denied, &decision.rule, reason);
        false
    }
}
