# Pings the gateway, a neighbour and the Internet with unprivileged ICMP sockets.
# Why it matters: an echo that comes back is a channel (data rides in it) and a map of who is there.
# When it works: an echo comes back.
# control: weakened: public-addresses
import socket
import struct

from attempt import blocked, escaped, fact, name_of, run
from network import PATIENCE, summary


def attempt():
    answers = []
    body = struct.pack(">BBHHH", 8, 0, 0, 0, 1) + b"secret"
    total = sum(struct.unpack(">7H", body))
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    for target in (fact("NEIGHBOUR"), "8.8.8.8", fact("GATEWAY")):
        for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
            try:
                with socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP) as sock:
                    sock.settimeout(PATIENCE)
                    sock.connect((target, 0))
                    sock.send(body[:2] + struct.pack(">H", checksum) + body[4:])
                    if b"secret" in sock.recv(512):
                        escaped(f"{target} echoed our data")
            except TimeoutError:
                answers.append(f"{target}: no answer")
            except OSError as error:
                answers.append(f"{target}: {name_of(error)}")
    blocked(summary(answers))


run(attempt)
