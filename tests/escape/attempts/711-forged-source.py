# Sends datagrams under another's address: by binding to it, by IP_TRANSPARENT, by a raw header.
# Why it matters: who can forge a neighbour's address can act for it.
# When it works: the kernel sends. (On an own kernel the suite looks on the host whether the datagram arrived.)
# control: host-root
import socket
import struct

from attempt import fact, first_success, reached, run


def attempt():
    mine, gateway, port = fact("FORGED_SOURCE"), fact("GATEWAY"), int(fact("HOST_PORT"))
    text = b"forged " + fact("HOST_MARK").encode()

    def bound(options):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for option in options:
                sock.setsockopt(socket.IPPROTO_IP, option, 1)
            sock.bind((mine, 0))
            sock.sendto(text, (gateway, port))

    def raw():
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sock:
            datagram = struct.pack(">4H", port, port, 8 + len(text), 0) + text
            header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), 1, 0, 64, 17, 0, socket.inet_aton(mine), socket.inet_aton(gateway))
            sock.sendto(header + datagram, (gateway, 0))

    label, _ = first_success((("bind", lambda: bound(())), ("IP_FREEBIND", lambda: bound((15,))), ("IP_TRANSPARENT", lambda: bound((19, 15))), ("raw header", raw)))
    reached(f"sent a datagram from {mine} to {gateway} by {label}")


run(attempt)
