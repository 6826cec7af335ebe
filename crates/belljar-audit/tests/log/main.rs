//! The audit log on real files: what is changed shows, what was acknowledged is kept, what is damaged is told.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bed;
mod damage;
mod death;
mod life;
mod tamper;
