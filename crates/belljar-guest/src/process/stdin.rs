//! Standard input by offset: bytes that were taken are not taken twice, whoever sends them again.

use std::rc::Rc;

use belljar_guest_protocol::Failure;
use belljar_types::Invalid;

use super::channel::Channel;
use super::record::Process;

/// End of file, as a person types it.
const END_OF_TRANSMISSION: &[u8] = &[4];

/// The writing end.
pub(crate) struct Stdin {
    channel: Option<Rc<Channel>>,
    terminal: bool,
}

impl Stdin {
    pub(super) fn new(channel: Option<Rc<Channel>>, terminal: bool) -> Self {
        Self { channel, terminal }
    }
}

impl Process {
    /// Writes all of `bytes`, which begin at `offset`, except what was taken before. Cut short, it has taken what `stdin_offset` says.
    pub(crate) async fn write_stdin(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let stdin = self.stdin.lock().await;
        let taken = self.stdin_offset.get();
        let Some(known) = taken.checked_sub(offset) else {
            return Err(Invalid::new("offset", format!("at most {taken}, which is what was taken so far"), offset.to_string()).into());
        };
        let mut rest = usize::try_from(known).ok().and_then(|known| bytes.get(known..)).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        let channel = stdin.channel.as_ref().ok_or_else(|| Failure::refused(32, "standard input is closed"))?;
        while !rest.is_empty() {
            let written = channel.write(rest).await.map_err(|error| {
                Failure::refused(error.raw_os_error().unwrap_or(0), format!("the process does not take standard input any more: {error}"))
            })?;
            self.stdin_offset.set(self.stdin_offset.get() + written as u64);
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Ends standard input; a terminal stays open and is told end of file as if it were typed.
    pub(crate) async fn close_stdin(&self) -> Result<(), Failure> {
        let mut stdin = self.stdin.lock().await;
        match &stdin.channel {
            Some(channel) if stdin.terminal => {
                // A terminal whose programs are gone has no use for it.
                let _ = channel.write(END_OF_TRANSMISSION).await;
            }
            _ => stdin.channel = None,
        }
        Ok(())
    }
}
