# Looks for neighbours by IPv6 link-local multicast, which filters for IPv4 forget.
# Why it matters: every link has it by itself, without any address being given.
# When it works: an answer comes from the link.
# control: weakened: ipv6-link
import socket

from attempt import blocked, escaped, fact, name_of, run
from network import PATIENCE


def attempt():
    answers = []
    for index, name in socket.if_nameindex():
        for target in ("ff02::1", "ff02::2"):
            try:
                with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
                    sock.settimeout(PATIENCE)
                    sock.sendto(b"hello\n", (target, int(fact("HOST_PORT")), 0, index))
                    data, sender = sock.recvfrom(4096)
                    escaped(f"{sender[0]} answered on {name}")
            except TimeoutError:
                answers.append(f"{name} {target}: no answer")
            except OSError as error:
                answers.append(f"{name} {target}: {name_of(error)}")
    blocked("; ".join(answers))


run(attempt)
