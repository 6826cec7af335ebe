# Opens raw IP sockets.
# Why it matters: forged packets: any source, any protocol.
# When it works: the socket is given.
# control: host-root
import socket

from attempt import first_success, reached, run


def attempt():
    label, _ = first_success(
        (name, lambda family=family, protocol=protocol: socket.socket(family, socket.SOCK_RAW, protocol))
        for name, family, protocol in (("icmp", 2, 1), ("tcp", 2, 6), ("raw", 2, 255), ("icmp6", 10, 58))
    )
    reached(f"a raw {label} socket")


run(attempt)
