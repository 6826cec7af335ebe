//! Leaving no trace of old connections when a namespace gets a new tenant.
//!
//! Sockets outlive their processes (half-closed, waiting out their time), and connection tracking outlives sockets. Both would let an old
//! tenant's traffic be taken for the new one's.

use std::io;
use std::net::Ipv4Addr;

use rustix::net::netlink::{INET_DIAG, NETFILTER};

use super::netlink::{Netlink, Request, attributes};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const SOCK_DESTROY: u16 = 21;
const ALL_STATES: u32 = !0;
const DIAG_ID_AT: usize = 4;
const DIAG_ID_LENGTH: usize = 48;

const CONNTRACK: u16 = 1 << 8;
const CONNTRACK_GET: u16 = CONNTRACK | 1;
const CONNTRACK_DELETE: u16 = CONNTRACK | 2;
const NFGEN_IPV4: [u8; 4] = [2, 0, 0, 0];
const CTA_TUPLE_ORIG: u16 = 1;
const CTA_TUPLE_REPLY: u16 = 2;
const CTA_TUPLE_IP: u16 = 1;
const CTA_IP_V4_SRC: u16 = 1;
const CTA_IP_V4_DST: u16 = 2;

/// Ends every TCP socket in the namespace that the calling thread is in, orphaned ones included. Returns how many.
pub fn close_connections() -> io::Result<usize> {
    let mut closed = 0;
    for family in [libc::AF_INET, libc::AF_INET6] {
        closed += close_where(family, |_| true)?;
    }
    Ok(closed)
}

/// Ends every TCP connection to this address in the namespace that the calling thread is in; the other side is told. Returns how many.
pub fn close_connections_to(address: Ipv4Addr) -> io::Result<usize> {
    const DESTINATION_AT: usize = 20;
    close_where(libc::AF_INET, |id| id.get(DESTINATION_AT..DESTINATION_AT + 4) == Some(&address.octets()))
}

fn close_where(family: i32, wanted: impl Fn(&[u8]) -> bool) -> io::Result<usize> {
    let netlink = Netlink::open(Some(INET_DIAG))?;
    let family = u8::try_from(family).map_err(io::Error::other)?;
    let mut closed = 0;
    for answer in netlink.call(Request::dump(SOCK_DIAG_BY_FAMILY, &diag_request(family, &[0; DIAG_ID_LENGTH])))? {
        let Some(id) = answer.get(DIAG_ID_AT..DIAG_ID_AT + DIAG_ID_LENGTH).filter(|id| wanted(id)) else { continue };
        match netlink.call(Request::new(SOCK_DESTROY, 0, &diag_request(family, id))) {
            Ok(_) => closed += 1,
            // It ended by itself meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(closed)
}

/// Makes connection tracking, in the namespace that the calling thread is in, forget every connection from or to this address. Returns how many.
pub fn forget_connections(address: Ipv4Addr) -> io::Result<usize> {
    let netlink = Netlink::open(Some(NETFILTER))?;
    let mut forgotten = 0;
    for answer in netlink.call(Request::dump(CONNTRACK_GET, &NFGEN_IPV4))? {
        let Some(body) = answer.get(NFGEN_IPV4.len()..) else { continue };
        let concerns = attributes(body).any(|(kind, tuple)| matches!(kind, CTA_TUPLE_ORIG | CTA_TUPLE_REPLY) && names(tuple, address));
        let Some((_, original)) = attributes(body).find(|(kind, _)| *kind == CTA_TUPLE_ORIG).filter(|_| concerns) else { continue };
        let mut request = Request::new(CONNTRACK_DELETE, 0, &NFGEN_IPV4);
        request.nest(CTA_TUPLE_ORIG, |tuple| tuple.raw(original));
        match netlink.call(request) {
            Ok(_) => forgotten += 1,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(forgotten)
}

fn names(tuple: &[u8], address: Ipv4Addr) -> bool {
    attributes(tuple)
        .filter(|(kind, _)| *kind == CTA_TUPLE_IP)
        .flat_map(|(_, ip)| attributes(ip))
        .any(|(kind, value)| matches!(kind, CTA_IP_V4_SRC | CTA_IP_V4_DST) && value == address.octets())
}

/// `struct inet_diag_req_v2` for TCP.
fn diag_request(family: u8, id: &[u8]) -> Vec<u8> {
    let mut bytes = vec![family, 6, 0, 0];
    bytes.extend_from_slice(&ALL_STATES.to_ne_bytes());
    bytes.extend_from_slice(id);
    bytes
}
