# Connects to an abstract unix socket of the host.
# Why it matters: abstract sockets have no file; only the network namespace keeps them apart (CVE-2020-15257 in containerd).
# When it works: the host's listener answers.
# control: host-root
import socket

from attempt import blocked, escaped, fact, is_canary, run


def attempt():
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(5)
        sock.connect("\0" + fact("HOST_ABSTRACT"))
        data = sock.recv(4096)
    if is_canary(data):
        escaped("an abstract socket of the host gave its secret")
    blocked("somebody inside answered")


run(attempt)
