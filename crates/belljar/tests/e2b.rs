//! E2B's wire as strangers use it: right and wrong tokens, broken frames, other people's sandboxes, a kill under an open stream. What its own SDKs
//! do is tried by `make test-e2b`; here nothing stands between the test and the socket.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

#[path = "e2b/access.rs"]
mod access;
#[path = "e2b/forms.rs"]
mod forms;
#[path = "e2b/frames.rs"]
mod frames;
#[path = "e2b/wire.rs"]
mod wire;
