# Sends broadcasts and IPv4 multicast in search of neighbours on the same link.
# Why it matters: a bridge between tenants carries them to everybody.
# When it works: an answer comes.
# control: weakened: ipv6-link
import socket

from attempt import blocked, escaped, fact, name_of, run
from network import PATIENCE


def attempt():
    answers = []
    for target in ("255.255.255.255", "224.0.0.1", fact("LINK_BROADCAST")):
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.settimeout(PATIENCE)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                sock.sendto(b"hello\n", (target, int(fact("HOST_PORT"))))
                _, sender = sock.recvfrom(4096)
                escaped(f"{sender[0]} answered to {target}")
        except TimeoutError:
            answers.append(f"{target}: no answer")
        except OSError as error:
            answers.append(f"{target}: {name_of(error)}")
    blocked("; ".join(answers))


run(attempt)
