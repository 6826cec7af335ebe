//! After memory was restored: the agent is told who it is now, and the names inside are brought up to date.
//!
//! Between these two and the restore nothing is asked of the sandbox. All that were restored from one image begin with the same secret; each loses it
//! here, before its caller hears of it.

use belljar_host::{Identity, Record};
use belljar_linux::cgroup::Cgroup;
use belljar_ports::{Guest, GuestError};
use belljar_types::{ByteRange, GuestPath, UserName, WriteOptions};
use futures_util::StreamExt;

use crate::create::{FirstAnswer, first_answer};
use crate::runtime::Inner;

const LONGEST: usize = 64 << 10;
const FILES: [&str; 2] = ["/etc/hosts", "/etc/hostname"];

impl Inner {
    pub(crate) async fn tell_who_it_is(&self, record: &Record, identity: &Identity, cgroup: &Cgroup) -> Result<(), FirstAnswer> {
        let agent = self.host.restored_agent(record, identity);
        first_answer(&agent.client, cgroup).await?;
        agent.renew().await.map_err(FirstAnswer::Agent)
    }
}

/// Through the agent, since the sentry has taken the files for itself. A sandbox without these files, or with others, can go on as it is.
pub(crate) async fn renew_names(guest: &dyn Guest, record: &Record) {
    for file in FILES {
        if let Err(error) = renew(guest, record, file).await {
            tracing::debug!(sandbox = %record.id, file, %error, "a restored sandbox keeps its names as they are");
        }
    }
}

async fn renew(guest: &dyn Guest, record: &Record, file: &str) -> Result<(), GuestError> {
    let (path, root): (GuestPath, UserName) = (GuestPath::new(file)?, "root".parse()?);
    let mut content = guest.read_file(&path, ByteRange::default(), Some(&root)).await?;
    let mut text = Vec::new();
    while let Some(piece) = content.bytes.next().await {
        text.extend_from_slice(&piece?);
        if text.len() > LONGEST {
            return Ok(());
        }
    }
    let hostname = record.spec.hostname.as_deref().unwrap_or(record.id.as_str());
    let Some(renewed) = belljar_host::renew_names(&text, hostname, record.guest_address) else { return Ok(()) };
    let options = WriteOptions { user: Some(root), ..WriteOptions::default() };
    let content = futures_util::stream::iter([Ok(renewed.into())]);
    guest.write_file(&path, &options, Box::pin(content)).await.map(drop)
}
