# Changes the network by netlink: adds an address, adds a route, takes the link down, makes a new interface.
# Why it matters: with another address or route, rules on the host no longer mean us.
# When it works: one change is taken.
# control: unshared-root
import socket
import struct

from attempt import first_success, reached, run
from network import attribute, netlink

REQUEST_ACK_CREATE = 1 | 4 | 0x400


def attempt():
    index = max(number for number, _ in socket.if_nameindex())
    address = socket.inet_aton("100.127.255.1")
    label, _ = first_success(
        (
            ("address", lambda: netlink(0, 20, REQUEST_ACK_CREATE, struct.pack("=BBBBI", 2, 32, 0, 0, index) + attribute(2, address) + attribute(1, address))),
            ("route", lambda: netlink(0, 24, REQUEST_ACK_CREATE, struct.pack("=8BI", 2, 32, 0, 0, 254, 4, 253, 1, 0) + attribute(1, address) + attribute(4, struct.pack("=I", index)))),
            ("new interface", lambda: netlink(0, 16, REQUEST_ACK_CREATE | 0x200, struct.pack("=BxHiII", 0, 0, 0, 0, 0) + attribute(3, b"escape1\0") + attribute(18, attribute(1, b"dummy\0")))),
            ("link up", lambda: netlink(0, 16, 1 | 4, struct.pack("=BxHiII", 0, 0, 1, 1, 1))),
        )
    )
    reached(f"netlink took our change: {label}")


run(attempt)
