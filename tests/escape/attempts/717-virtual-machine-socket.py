# Opens a vsock, the channel between a virtual machine and its hypervisor, and calls the host end.
# Why it matters: it is in no network namespace: it leads past every rule to the machine around the host.
# When it works: the socket is given.
# control: host-root
import socket

from attempt import first_success, reached, run


def attempt():
    label, _ = first_success(((name, lambda kind=kind: socket.socket(40, kind, 0)) for name, kind in (("stream", 1), ("datagram", 2), ("seqpacket", 5))))
    reached(f"a vsock of type {label}")


run(attempt)
