# Opens packet sockets, which see and send whole frames.
# Why it matters: it sees other tenants' traffic on a shared link and forges ARP; the code had holes (CVE-2016-8655, CVE-2020-14386).
# When it works: the socket is given.
# control: host-root
import socket

from attempt import first_success, reached, run


def attempt():
    label, _ = first_success(((name, lambda kind=kind: socket.socket(17, kind, socket.htons(3))) for name, kind in (("raw", 3), ("datagram", 2))))
    reached(f"a {label} packet socket")


run(attempt)
