# Opens sockets of every rare protocol family, which may also make the host load a module for it.
# Why it matters: rarely used modules are badly tested kernel code; asking for them loads them on the host.
# When it works: a protocol family or module that work inside never needs answers.
# control: host-root
import socket

from attempt import first_success, reached, run

# Everything but unix, inet, inet6 and netlink; packet and vsock have their own attempts.
RARE = [number for number in range(46) if number not in (0, 1, 2, 10, 16, 17, 40)]


def attempt():
    label, _ = first_success(
        (f"family {family} type {kind}", lambda family=family, kind=kind, protocol=protocol: socket.socket(family, kind, protocol))
        for family in RARE
        for kind, protocol in ((2, 0), (5, 0), (1, 0), (3, 0), (3, 2))
    )
    reached(f"a socket of {label}")


run(attempt)
