//! The way out through the server: the program itself, with its configuration, its API and its command line, on both classes, against an internet of our
//! own that writes down every packet it gets. What single attacks can do is tried in `egress.rs`; here it is shown that the server attaches, keeps and
//! changes policies whatever happens to it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "served_egress/audit.rs"]
mod audit;
#[path = "served_egress/bytes.rs"]
mod bytes;
#[path = "served_egress/ingress.rs"]
mod ingress;
#[path = "egress/internet.rs"]
mod internet;
#[path = "served_egress/life.rs"]
mod life;
#[path = "served_egress/packages.rs"]
mod packages;
#[path = "egress/prelude.rs"]
mod prelude;
#[path = "served_egress/reach.rs"]
mod reach;
#[path = "egress/registries.rs"]
mod registries;
#[path = "served_egress/ruled.rs"]
mod ruled;
#[path = "served_egress/scene.rs"]
mod scene;
#[path = "served_egress/secrets.rs"]
mod secrets;
#[path = "served_egress/trust.rs"]
mod trust;
