//! Makes, cleans, finds and destroys the namespaces behind slots.

use std::io;

use belljar_linux::netns::{Links, Netns, VethEnd, close_connections, set_sysctl};
use belljar_types::Network;

use crate::config::Places;
use crate::error::HostError;
use crate::gateway::Gateway;
use crate::slot::{KINDS, Slot};
use std::os::fd::AsFd;
use std::sync::Arc;

const LOOPBACK: &str = "lo";

/// Set before there is an interface. The namespace belongs to the host, so nobody in a sandbox can change them.
const SETTINGS: [(&str, &str); 4] = [
    ("ipv6/conf/all/disable_ipv6", "1"),
    ("ipv6/conf/default/disable_ipv6", "1"),
    ("ipv4/ip_unprivileged_port_start", "0"),
    ("ipv4/ping_group_range", "0 2147483647"),
];

/// What is on the host of a slot that may have been left by a crash.
pub(crate) struct Remains {
    pub(crate) number: u32,
    /// Known if the whole slot is there.
    pub(crate) network: Option<Network>,
}

pub(crate) struct Maker {
    places: Places,
    gateway: Arc<Gateway>,
}

impl Maker {
    pub(crate) fn new(places: Places, gateway: Arc<Gateway>) -> Self {
        Self { places, gateway }
    }

    pub(crate) fn slot(&self, number: u32, network: Network) -> Slot {
        Slot::new(&self.places, number, network, self.gateway.nameservers())
    }

    /// Makes a slot, or leaves nothing.
    pub(crate) fn make(&self, number: u32, network: Network) -> Result<(), HostError> {
        let made = self.try_make(&self.slot(number, network));
        made.map_err(|source| {
            if let Err(error) = self.destroy(number) {
                tracing::warn!(slot = number, %error, "a half-made network slot could not be removed");
            }
            HostError::Slot { operation: "make the namespace", slot: number, source }
        })
    }

    /// Makes a used slot as good as new, or says why it is not.
    pub(crate) fn clean(&self, number: u32, network: Network) -> Result<(), HostError> {
        self.try_clean(&self.slot(number, network)).map_err(|source| HostError::Slot {
            operation: "clean the namespace",
            slot: number,
            source,
        })
    }

    /// Removes whatever there is of a slot.
    pub(crate) fn destroy(&self, number: u32) -> Result<(), HostError> {
        let attempt = || -> io::Result<()> {
            for (kind, _) in KINDS {
                self.gateway.links(|links| links.delete(&format!("{kind}{number}")))?;
            }
            Netns::forget(&self.places.netns.join(number.to_string()))
        };
        attempt().map_err(|source| HostError::Slot { operation: "destroy the namespace", slot: number, source })
    }

    /// All slots of which something is there.
    pub(crate) fn remains(&self) -> Result<Vec<Remains>, HostError> {
        let links = self.gateway.links(Links::list).map_err(|source| HostError::Gateway { operation: "list the interfaces", source })?;
        let mut found = std::collections::BTreeMap::new();
        for (kind, network) in KINDS {
            let numbers = links.iter().filter_map(|link| link.name.strip_prefix(kind)?.parse::<u32>().ok());
            found.extend(numbers.map(|number| (number, Some(network))));
        }
        let path = &self.places.netns;
        let failed = |source| HostError::Files { operation: "list", path: path.clone(), source };
        let mut kept = std::collections::BTreeSet::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            if let Some(number) = entry.map_err(failed)?.file_name().to_str().and_then(|name| name.parse().ok()) {
                kept.insert(number);
                found.entry(number).or_insert(None);
            }
        }
        let whole = |number| kept.contains(&number) && Netns::open(&path.join(number.to_string())).is_ok();
        Ok(found.into_iter().map(|(number, network)| Remains { number, network: network.filter(|_| whole(number)) }).collect())
    }

    fn try_make(&self, slot: &Slot) -> io::Result<()> {
        let netns = Netns::create(&slot.netns)?;
        let links = netns.run(|| {
            for (name, value) in SETTINGS {
                set_sysctl(name, value)?;
            }
            Links::open()
        })?;
        let host_interface = slot.host_interface();
        self.gateway.links(|gateway| {
            // Files and output go this way, and gVisor's network pays for each packet. Connections to the internet agree on less by themselves.
            let largest_packet = VethEnd::LARGEST_PACKET;
            let here = VethEnd { name: &host_interface, netns: self.gateway.netns().as_fd(), largest_packet };
            gateway.create_veth(here, VethEnd { name: slot.interface, netns: netns.as_fd(), largest_packet })?;
            let index = gateway.index(&host_interface)?;
            gateway.add_address(index, slot.gateway_address, slot.prefix)?;
            gateway.set_up(index, true)
        })?;
        links.set_up(links.index(LOOPBACK)?, true)?;
        address(&links, slot)
    }

    fn try_clean(&self, slot: &Slot) -> io::Result<()> {
        let netns = Netns::open(&slot.netns)?;
        if netns.has_processes()? {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a process is still inside"));
        }
        let links = netns.run(|| {
            let links = Links::open()?;
            // Down first: nothing that is being closed can say goodbye to anybody.
            links.set_up(links.index(slot.interface)?, false)?;
            links.set_up(links.index(LOOPBACK)?, false)?;
            close_connections()?;
            Ok(links)
        })?;
        let known = links.list()?;
        if let Some(stranger) = known.iter().find(|link| link.name != LOOPBACK && link.name != slot.interface) {
            return Err(io::Error::other(format!("an interface was added: {}", stranger.name)));
        }
        self.gateway.forget_connections(slot.guest_address)?;
        // The host's end goes down and up too, which drops what it learnt about its neighbour. A maker that was killed half-way may not have
        // given it its address yet.
        self.gateway.links(|gateway| {
            let index = gateway.index(&slot.host_interface())?;
            gateway.set_up(index, false)?;
            gateway.add_address(index, slot.gateway_address, slot.prefix)?;
            gateway.set_up(index, true)
        })?;
        links.flush_addresses(links.index(slot.interface)?)?;
        links.set_up(links.index(LOOPBACK)?, true)?;
        address(&links, slot)
    }
}

/// gVisor takes the address off its interface, so it is always given anew.
fn address(links: &Links, slot: &Slot) -> io::Result<()> {
    let index = links.index(slot.interface)?;
    links.add_address(index, slot.guest_address, slot.prefix)?;
    links.set_up(index, true)?;
    // A closed sandbox has nowhere to go: its connections fail at once instead of timing out at the firewall.
    if slot.network == Network::None { Ok(()) } else { links.set_default_route(slot.gateway_address) }
}
