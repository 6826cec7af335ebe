//! What `doctor` shows of the host itself.

use belljar_linux::btrfs::QuotaKind;
use belljar_linux::cgroup::{Controller, LayoutKind};
use belljar_types::Check;

use crate::inner::Inner;

impl Inner {
    pub(crate) fn checks(&self) -> Vec<Check> {
        vec![self.check_cgroups(), self.check_limits(), self.check_pool(), self.check_quota(), self.check_slots(), self.check_network()]
    }

    fn check_cgroups(&self) -> Check {
        const NAME: &str = "cgroups";
        match self.layout.kind() {
            LayoutKind::V2 => Check::pass(NAME, "v2"),
            LayoutKind::Hybrid => Check::pass(NAME, "v1 controllers beside a v2 tree"),
            LayoutKind::V1 => Check::warn(
                NAME,
                "v1 only",
                "mount cgroup v2 as well: without it the kernel does not tell when a sandbox has ended, and it has to be asked again and again",
            ),
        }
    }

    fn check_limits(&self) -> Check {
        const NAME: &str = "limits of cpu, memory and processes";
        let missing: Vec<&str> = [Controller::Cpu, Controller::Memory, Controller::Pids]
            .into_iter()
            .filter(|controller| !self.layout.has(*controller))
            .map(Controller::as_str)
            .collect();
        if missing.is_empty() {
            Check::pass(NAME, "all can be enforced")
        } else {
            let fix = "enable these controllers in the kernel and mount them; no sandbox starts without";
            Check::fail(NAME, format!("no cgroup controller for {}", missing.join(", ")), fix)
        }
    }

    fn check_pool(&self) -> Check {
        const NAME: &str = "pool";
        const LITTLE: u64 = 1 << 30;
        const GIB: f64 = (1u64 << 30) as f64;
        match self.pool.space() {
            Ok((free, all)) => {
                let found = format!("{:.1} of {:.1} GiB free", free as f64 / GIB, all as f64 / GIB);
                if free < LITTLE {
                    Check::warn(NAME, found, "remove templates or sandboxes, or make a larger pool")
                } else {
                    Check::pass(NAME, found)
                }
            }
            Err(error) => Check::fail(
                NAME,
                format!("cannot be asked: {error}"),
                "look at the kernel's log for errors of btrfs and of the disk below it",
            ),
        }
    }

    fn check_quota(&self) -> Check {
        const NAME: &str = "disk limit";
        match self.pool.quota() {
            QuotaKind::Simple => Check::pass(NAME, "btrfs simple quotas"),
            QuotaKind::Full => Check::warn(NAME, "btrfs full quotas", "use Linux 6.7 or later, whose simple quotas cost next to nothing"),
        }
    }

    fn check_slots(&self) -> Check {
        let (closed, open, filtered) = self.stock.free();
        Check::pass("network slots", format!("{closed} closed, {open} open and {filtered} filtered ready"))
    }

    fn check_network(&self) -> Check {
        const NAME: &str = "open network";
        if self.config.open_slots == 0 {
            Check::pass(NAME, "not offered; the machine's own network is untouched")
        } else if self.gateway.nameservers().is_empty() {
            let fix = "name a nameserver other than the machine's own loopback in /etc/resolv.conf";
            Check::warn(NAME, "offered, but without name resolution", fix)
        } else {
            Check::pass(NAME, format!("offered, names resolved by {:?}; IPv4 forwarding is on", self.gateway.nameservers()))
        }
    }
}
