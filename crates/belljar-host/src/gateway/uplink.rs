//! The cable from the gateway to the machine's own network, for open sandboxes only.
//!
//! It is the one place where Belljar changes the machine: one interface, one firewall table, and IPv4 forwarding if it was off. All three are
//! undone when the uplink goes.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::PathBuf;

use belljar_linux::netns::{Links, Netns, VethEnd};

use crate::config::{Places, run_directory};
use crate::error::HostError;
use crate::gateway::rules::{self, UPLINK};

const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";
/// Uplinks of all instances are in 100.127.0.0/16, where no slot ever is.
const NETWORKS: u32 = u32::from_be_bytes([100, 127, 0, 0]);
const NETWORK_COUNT: u32 = 1 << 14;
const PREFIX: u8 = 30;
const PREFIX_OF_NAME: &str = "bju";
const MARKER: &str = "forwarding-was-off";

pub(super) fn open(places: &Places, gateway: &Netns, gateway_links: &Links, nameservers: &[Ipv4Addr]) -> Result<(), HostError> {
    let interface = interface(places);
    let failed = |operation| move |source| HostError::Gateway { operation, source };
    let network = plug_in(places, &interface, gateway, gateway_links).map_err(failed("connect the uplink"))?;
    let network_text = format!("{}/{PREFIX}", Ipv4Addr::from(network));
    rules::load(None, &rules::machine(&places.name(), &interface, &network_text, nameservers))?;
    turn_on_forwarding(places).map_err(failed("turn on IPv4 forwarding"))
}

/// Undoes all of it; does nothing if there is nothing.
pub(super) fn close(places: &Places) -> Result<(), HostError> {
    let failed = |operation| move |source| HostError::Gateway { operation, source };
    let links = Links::open().map_err(failed("look at the uplink"))?;
    let there = links.delete(&interface(places)).map_err(failed("disconnect the uplink"))?;
    let marker = marker(places);
    if there || marker.exists() {
        rules::load(None, &rules::nothing(&places.name()))?;
    }
    if !marker.exists() {
        return Ok(());
    }
    let others = links.list().map_err(failed("look for other uplinks"))?;
    if let Some(heir) = others.iter().find_map(|link| link.name.strip_prefix(PREFIX_OF_NAME)) {
        // Another instance still needs forwarding; turning it off becomes its business.
        let inherited = run_directory(heir).join(MARKER);
        fs::rename(&marker, inherited).map_err(failed("pass on IPv4 forwarding"))?;
    } else {
        fs::write(FORWARDING, "0").and_then(|()| fs::remove_file(&marker)).map_err(failed("turn off IPv4 forwarding"))?;
        tracing::info!(instance = places.instance, "IPv4 forwarding of this machine turned off again");
    }
    Ok(())
}

fn interface(places: &Places) -> String {
    format!("{PREFIX_OF_NAME}{}", places.instance)
}

/// Says that forwarding was off before.
fn marker(places: &Places) -> PathBuf {
    places.run.join(MARKER)
}

/// Always made anew: a cable that a crash left may be half-configured. Returns its network.
fn plug_in(places: &Places, interface: &str, gateway: &Netns, gateway_links: &Links) -> io::Result<u32> {
    let links = Links::open()?;
    links.delete(interface)?;
    let network = free_network(places, &links)?;
    let here = Netns::current()?;
    let largest_packet = VethEnd::ORDINARY_PACKET;
    let there = VethEnd { name: UPLINK, netns: gateway.as_fd(), largest_packet };
    links.create_veth(VethEnd { name: interface, netns: here.as_fd(), largest_packet }, there)?;
    let index = links.index(interface)?;
    links.add_address(index, Ipv4Addr::from(network + 1), PREFIX)?;
    links.set_up(index, true)?;
    let inner = gateway_links.index(UPLINK)?;
    gateway_links.add_address(inner, Ipv4Addr::from(network + 2), PREFIX)?;
    gateway_links.set_up(inner, true)?;
    gateway_links.set_default_route(Ipv4Addr::from(network + 1))?;
    Ok(network)
}

/// The first network from this instance's own place on that no interface of the machine has.
fn free_network(places: &Places, links: &Links) -> io::Result<u32> {
    let start = places.instance.bytes().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let taken: Vec<u32> = links.addresses()?.into_iter().map(|address| u32::from(address) & !3).collect();
    let mut candidates = (0..NETWORK_COUNT).map(|step| NETWORKS + (start.wrapping_add(step) % NETWORK_COUNT) * 4);
    candidates.find(|network| !taken.contains(network)).ok_or_else(|| io::ErrorKind::AddrInUse.into())
}

fn turn_on_forwarding(places: &Places) -> io::Result<()> {
    if fs::read_to_string(FORWARDING)?.trim() == "0" {
        fs::write(marker(places), "")?;
        fs::write(FORWARDING, "1")?;
        tracing::warn!(instance = places.instance, "IPv4 forwarding of this machine was off and is now on, for open sandboxes");
    }
    Ok(())
}
