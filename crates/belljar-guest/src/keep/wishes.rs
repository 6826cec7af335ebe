//! What programs inside have asked for and nobody has answered. Few at a time: a program that wants more has to wait.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use belljar_guest_protocol::Failure;
use belljar_guest_protocol::wire::{AnswerWish, WishBody};
use rustix::io::Errno;
use tokio::sync::{Notify, oneshot};

/// Wishes that may wait at one time.
const MOST: usize = 16;
/// How long a wish waits for somebody to listen: a restart of the server takes less.
const UNHEARD: Duration = Duration::from_secs(60);

struct Waiting {
    serial: u64,
    wish: WishBody,
    answer: oneshot::Sender<Result<String, Failure>>,
}

/// All that wait, and who listens.
#[derive(Default)]
pub(crate) struct Wishes {
    waiting: RefCell<Vec<Waiting>>,
    serials: Cell<u64>,
    /// The number of who listened last, and whether they still do.
    listener: Cell<u64>,
    heard: Cell<bool>,
    changed: Notify,
}

/// Whoever listens, until somebody else does.
pub(crate) struct Listener {
    wishes: Rc<Wishes>,
    number: u64,
    told: u64,
}

impl Wishes {
    /// From now on this one hears, and the one before does not.
    pub(crate) fn listen(self: &Rc<Self>) -> Listener {
        let number = self.listener.get() + 1;
        self.listener.set(number);
        self.heard.set(true);
        self.changed.notify_waiters();
        Listener { wishes: Rc::clone(self), number, told: 0 }
    }

    /// Makes a wish and waits for what becomes of it. Whoever stops waiting takes it back.
    pub(super) async fn ask(&self, wish: WishBody) -> Result<String, Failure> {
        if self.waiting.borrow().len() >= MOST {
            return Err(Failure::refused(Errno::AGAIN.raw_os_error(), "too many files are being kept at the same time; try again"));
        }
        let (answer, mut answered) = oneshot::channel();
        let serial = self.serials.get() + 1;
        self.serials.set(serial);
        self.waiting.borrow_mut().push(Waiting { serial, wish, answer });
        let _taken_back = TakenBack { wishes: self, serial };
        self.changed.notify_waiters();
        loop {
            match tokio::time::timeout(UNHEARD, &mut answered).await {
                Ok(Ok(answer)) => return answer,
                Err(_) if self.heard.get() => {}
                Ok(Err(_)) | Err(_) => {
                    return Err(Failure::refused(Errno::AGAIN.raw_os_error(), "the server does not listen; try again later"));
                }
            }
        }
    }

    /// Answers a wish, if it is still there.
    pub(crate) fn answer(&self, body: AnswerWish) {
        let found = self.waiting.borrow().iter().position(|waiting| waiting.wish.id == body.id);
        if let Some(place) = found {
            let waiting = self.waiting.borrow_mut().remove(place);
            let refusal = || Failure::refused(0, body.refusal.unwrap_or_else(|| "the server did not say why".to_owned()));
            // Whoever asked may just have gone.
            let _ = waiting.answer.send(body.artifact.ok_or_else(refusal));
        }
    }

    fn after(&self, serial: u64) -> Option<(u64, WishBody)> {
        self.waiting.borrow().iter().find(|waiting| waiting.serial > serial).map(|waiting| (waiting.serial, waiting.wish.clone()))
    }
}

struct TakenBack<'a> {
    wishes: &'a Wishes,
    serial: u64,
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        self.wishes.waiting.borrow_mut().retain(|waiting| waiting.serial != self.serial);
    }
}

impl Listener {
    /// The next wish; none when somebody else listens.
    pub(crate) async fn next(&mut self) -> Option<WishBody> {
        loop {
            if self.wishes.listener.get() != self.number {
                return None;
            }
            if let Some((serial, wish)) = self.wishes.after(self.told) {
                self.told = serial;
                return Some(wish);
            }
            self.wishes.changed.notified().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.wishes.listener.get() == self.number {
            self.wishes.heard.set(false);
        }
    }
}
