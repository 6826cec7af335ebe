# Adds a table to the firewall, and lists what is there.
# Why it matters: who may write rules may remove them; nftables' code is a favourite of exploits (CVE-2022-32250, CVE-2024-1086).
# When it works: the table is made.
# control: unshared-root
import struct

from attempt import first_success, reached, run
from network import attribute, netlink

NETFILTER, NEW_TABLE, BATCH_BEGIN, BATCH_END = 12, (10 << 8) | 0, 16, 17


def attempt():
    subsystem = struct.pack(">BBH", 0, 0, 10)
    table = (NEW_TABLE, 1 | 4 | 0x400, struct.pack(">BBH", 1, 0, 0) + attribute(1, b"escape\0"))
    label, _ = first_success(
        (
            ("new table", lambda: netlink(NETFILTER, BATCH_BEGIN, 1, subsystem, (table, (BATCH_END, 1, subsystem)))),
            ("list tables", lambda: netlink(NETFILTER, (10 << 8) | 1, 1 | 0x300, struct.pack(">BBH", 0, 0, 0))),
        )
    )
    reached(f"the firewall took: {label}")


run(attempt)
