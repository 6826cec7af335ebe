//! How long a lost server is waited for. A restart takes seconds; whoever holds a process's streams holds on that long, and no longer.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::ClientError;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Whether the server is there, as of the last request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It answers.
    Up,
    /// It does not, and is tried again.
    Lost,
}

/// Shared by everything that holds on to one process.
#[derive(Debug)]
pub struct Patience {
    limit: Duration,
    lost: Mutex<Option<(Instant, Duration)>>,
    link: watch::Sender<Link>,
}

impl Patience {
    /// Waits for a lost server for `limit`.
    pub fn new(limit: Duration) -> Self {
        Self { limit, lost: Mutex::new(None), link: watch::Sender::new(Link::Up) }
    }

    /// Tells when the server is lost and when it is back.
    pub fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    /// The server answered.
    pub fn answered(&self) {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.link.send_if_modified(|link| std::mem::replace(link, Link::Up) != Link::Up);
    }

    /// Returns when it is time to try again; with the error if that is no use, or was tried long enough.
    pub async fn bear(&self, error: ClientError) -> Result<(), ClientError> {
        if !error.is_passing() {
            return Err(error);
        }
        let pause = {
            let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
            let (since, pause) = lost.get_or_insert_with(|| (Instant::now(), FIRST_PAUSE));
            if since.elapsed() > self.limit {
                return Err(error);
            }
            std::mem::replace(pause, (*pause * 2).min(LONGEST_PAUSE))
        };
        self.link.send_if_modified(|link| std::mem::replace(link, Link::Lost) != Link::Lost);
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Does `work` again and again while its failures will pass.
    pub async fn insist<T, F: Future<Output = Result<T, ClientError>>>(&self, mut work: impl FnMut() -> F) -> Result<T, ClientError> {
        loop {
            match work().await {
                Ok(done) => {
                    self.answered();
                    return Ok(done);
                }
                Err(error) => self.bear(error).await?,
            }
        }
    }
}
