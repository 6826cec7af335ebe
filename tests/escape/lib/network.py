"""What the attempts on the network share: asking the host's listener, and speaking netlink without tools."""

import os
import socket
import struct

from attempt import escaped, is_canary, name_of

# Long enough for a busy machine to answer, short enough to try several addresses.
PATIENCE = float(os.environ.get("ESCAPE_PATIENCE", "2"))


def ask(family, kind, address, source=None, options=()):
    """Connects, says something, and returns what comes back. The host's listeners answer everybody with the secret."""
    with socket.socket(family, kind) as sock:
        sock.settimeout(PATIENCE)
        for level, option, value in options:
            sock.setsockopt(level, option, value)
        if source:
            sock.bind(source)
        sock.connect(address)
        sock.send(b"hello\n")
        return sock.recv(4096)


def ask_all(addresses, ports, source=None, options=(), datagrams=True):
    """Asks each address on each port over TCP and UDP. Ends as escaped on any answer at all; returns what was said instead."""
    answers = []
    for address in addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        for port in ports:
            for name, kind in (("tcp", socket.SOCK_STREAM), ("udp", socket.SOCK_DGRAM))[: 2 if datagrams else 1]:
                where = f"{name} {address}:{port}"
                try:
                    said = ask(family, kind, (address, port), source, options)
                    if is_canary(said):
                        escaped(f"{where} answered with the host's secret")
                    if said or name == "tcp":
                        escaped(f"{where} let us connect and answered {said[:40]!r}")
                except TimeoutError:
                    answers.append(f"{where}: no answer")
                except OSError as error:
                    answers.append(f"{where}: {name_of(error)}")
    return answers


def summary(answers):
    """Many answers in few words."""
    counted = {}
    for answer in answers:
        reason = answer.rsplit(": ", 1)[-1]
        counted[reason] = counted.get(reason, 0) + 1
    return ", ".join(f"{reason} ({count})" for reason, count in sorted(counted.items()))


def attribute(kind, data):
    """A netlink attribute."""
    length = 4 + len(data)
    return struct.pack("=HH", length, kind) + data + b"\0" * (-length % 4)


def netlink(protocol, message, flags, body, several=()):
    """Sends one netlink request, or a batch, and returns the answer's bytes; raises OSError with the kernel's error."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as sock:
        sock.settimeout(PATIENCE)
        sock.bind((0, 0))
        sock.send(b"".join(struct.pack("=IHHII", 16 + len(data), kind, bits, 1 + at, 0) + data for at, (kind, bits, data) in enumerate([(message, flags, body), *several])))
        answer = sock.recv(65536)
    at = 0
    while at + 16 <= len(answer):
        length, kind = struct.unpack_from("=IH", answer, at)
        if kind == 2:
            (code,) = struct.unpack_from("=i", answer, at + 16)
            if code:
                raise OSError(-code, os.strerror(-code))
        at += (max(length, 16) + 3) & ~3
    return answer
