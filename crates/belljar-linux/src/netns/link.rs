//! Interfaces, addresses and routes of one network namespace.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::net::netdevice::name_to_index;

use super::netlink::{CREATE_NEW, CREATE_OR_REPLACE, Netlink, Request, attributes};

const VETH_INFO_PEER: u16 = 1;
const IFF_UP: u32 = 1;
const IFINFO_LENGTH: usize = 16;
const AF_INET: u8 = 2;
const TABLE_MAIN: u8 = 254;
const PROTOCOL_BOOT: u8 = 3;
const TYPE_UNICAST: u8 = 1;

/// One end of a veth pair to be made.
#[derive(Debug, Clone, Copy)]
pub struct VethEnd<'a> {
    /// The interface's name, at most 15 bytes.
    pub name: &'a str,
    /// Where it shall live.
    pub netns: BorrowedFd<'a>,
    /// The largest packet, up to [`VethEnd::LARGEST_PACKET`].
    pub largest_packet: u32,
}

impl VethEnd<'_> {
    /// What the internet's links take.
    pub const ORDINARY_PACKET: u32 = 1500;
    /// What a pair of connected interfaces takes.
    pub const LARGEST_PACKET: u32 = 65_535;
}

/// An interface that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its number in this namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
}

/// A handle on the links of the namespace in which it was made, usable from everywhere.
#[derive(Debug)]
pub struct Links {
    netlink: Netlink,
}

impl Links {
    /// A handle for the namespace that the calling thread is in. (Routing is netlink's protocol 0.)
    pub fn open() -> io::Result<Self> {
        Ok(Self { netlink: Netlink::open(None)? })
    }

    /// All interfaces.
    pub fn list(&self) -> io::Result<Vec<Link>> {
        let answers = self.netlink.call(Request::dump(libc::RTM_GETLINK, &interface(0, false)))?;
        Ok(answers.iter().filter_map(|answer| parse_link(answer)).collect())
    }

    /// The number of an interface.
    pub fn index(&self, name: &str) -> io::Result<u32> {
        Ok(name_to_index(self.netlink.socket(), name)?)
    }

    /// Makes a pair of connected interfaces.
    pub fn create_veth(&self, here: VethEnd<'_>, there: VethEnd<'_>) -> io::Result<()> {
        let mut request = Request::new(libc::RTM_NEWLINK, CREATE_NEW, &interface(0, false));
        end(&mut request, here);
        request.nest(libc::IFLA_LINKINFO, |info| {
            info.text(libc::IFLA_INFO_KIND, "veth");
            info.nest(libc::IFLA_INFO_DATA, |data| {
                data.nest(VETH_INFO_PEER, |peer| {
                    peer.raw(&interface(0, false));
                    end(peer, there);
                });
            });
        });
        self.netlink.call(request).map(drop)
    }

    /// Removes an interface, and its peer if it is a veth. `false` if there is none of that name.
    pub fn delete(&self, name: &str) -> io::Result<bool> {
        let mut request = Request::new(libc::RTM_DELLINK, 0, &interface(0, false));
        request.text(libc::IFLA_IFNAME, name);
        match self.netlink.call(request) {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Brings an interface up, or down, which drops its routes and neighbours.
    pub fn set_up(&self, index: u32, up: bool) -> io::Result<()> {
        self.netlink.call(Request::new(libc::RTM_NEWLINK, 0, &interface(index, up))).map(drop)
    }

    /// Gives an interface this address; nothing changes if it has it.
    pub fn add_address(&self, index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        let mut request = Request::new(libc::RTM_NEWADDR, CREATE_OR_REPLACE, &address_header(index, prefix));
        request.attribute(libc::IFA_LOCAL, &address.octets());
        request.attribute(libc::IFA_ADDRESS, &address.octets());
        self.netlink.call(request).map(drop)
    }

    /// The IPv4 addresses of all interfaces.
    pub fn addresses(&self) -> io::Result<Vec<Ipv4Addr>> {
        let answers = self.netlink.call(Request::dump(libc::RTM_GETADDR, &address_header(0, 0)))?;
        let local = |answer: &Vec<u8>| {
            let (_, value) = attributes(answer.get(8..)?).find(|(kind, _)| *kind == libc::IFA_LOCAL)?;
            Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?))
        };
        Ok(answers.iter().filter_map(local).collect())
    }

    /// Takes all IPv4 addresses off an interface.
    pub fn flush_addresses(&self, index: u32) -> io::Result<()> {
        const PREFIX_AT: usize = 1;
        const INDEX_AT: usize = 4;
        for answer in self.netlink.call(Request::dump(libc::RTM_GETADDR, &address_header(0, 0)))? {
            let (Some(header), Some(rest)) = (answer.get(..8), answer.get(8..)) else { continue };
            if header[INDEX_AT..] != index.to_ne_bytes() {
                continue;
            }
            let mut request = Request::new(libc::RTM_DELADDR, 0, &address_header(index, header[PREFIX_AT]));
            for (kind, value) in attributes(rest).filter(|(kind, _)| *kind == libc::IFA_LOCAL) {
                request.attribute(kind, value);
            }
            match self.netlink.call(request) {
                Err(error) if error.raw_os_error() != Some(libc::EADDRNOTAVAIL) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends everything that has no other route to this neighbour.
    pub fn set_default_route(&self, via: Ipv4Addr) -> io::Result<()> {
        let fixed = [AF_INET, 0, 0, 0, TABLE_MAIN, PROTOCOL_BOOT, 0, TYPE_UNICAST, 0, 0, 0, 0];
        let mut request = Request::new(libc::RTM_NEWROUTE, CREATE_OR_REPLACE, &fixed);
        request.attribute(libc::RTA_GATEWAY, &via.octets());
        self.netlink.call(request).map(drop)
    }
}

fn end(request: &mut Request, end: VethEnd<'_>) {
    request.text(libc::IFLA_IFNAME, end.name);
    request.attribute(libc::IFLA_NET_NS_FD, &end.netns.as_raw_fd().to_ne_bytes());
    request.attribute(libc::IFLA_MTU, &end.largest_packet.to_ne_bytes());
}

/// `struct ifinfomsg` that changes nothing but the up flag.
fn interface(index: u32, up: bool) -> [u8; IFINFO_LENGTH] {
    let mut bytes = [0; IFINFO_LENGTH];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&(if up { IFF_UP } else { 0 }).to_ne_bytes());
    if index != 0 {
        bytes[12..16].copy_from_slice(&IFF_UP.to_ne_bytes());
    }
    bytes
}

/// `struct ifaddrmsg`.
fn address_header(index: u32, prefix: u8) -> [u8; 8] {
    let mut bytes = [AF_INET, prefix, 0, 0, 0, 0, 0, 0];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes
}

fn parse_link(answer: &[u8]) -> Option<Link> {
    let index = u32::from_ne_bytes(answer.get(4..8)?.try_into().ok()?);
    let (_, name) = attributes(answer.get(IFINFO_LENGTH..)?).find(|(kind, _)| *kind == libc::IFLA_IFNAME)?;
    Some(Link { index, name: String::from_utf8_lossy(name.strip_suffix(&[0])?).into_owned() })
}
