//! The explicit entrances, for programs that insist on a proxy and show what it says: CONNECT, plain requests for a proxy, and SOCKS5. They lead to
//! the same decision as everything else.

mod connect;
mod socks;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::door::Fuse;
use crate::prefixed::Prefixed;
use crate::session::Session;
use crate::way::Outside;

/// How long a client may take to say what it wants.
const WISH: Duration = Duration::from_secs(10);
const SOCKS5: u8 = 5;

/// Finds out which it is, and goes on.
pub(crate) async fn explicit(mut stream: TcpStream, fuse: &Fuse, session: &Arc<Session>, outside: &Arc<Outside>) {
    let mut first = [0; 1];
    if !matches!(timeout(WISH, stream.read_exact(&mut first)).await, Ok(Ok(_))) {
        return fuse.blow();
    }
    let stream = Prefixed::new(first.to_vec(), stream);
    let whole = if first == [SOCKS5] {
        socks::serve(stream, fuse, session, outside).await
    } else {
        connect::serve(stream, fuse, session, outside).await
    };
    if !whole {
        fuse.blow();
    }
}
