//! The engine on the real runsc, host and agent. Needs root, `make guest` and `scripts/install-runsc`.

mod crash;
mod life;
mod limits;
mod machine;
mod speed;
