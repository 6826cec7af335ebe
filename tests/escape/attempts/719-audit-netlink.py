# Asks the audit system for its state.
# Why it matters: who may configure audit may stop it and read what it says of others.
# When it works: it answers with its state.
# control: host-root
from attempt import reached, run
from network import netlink


def attempt():
    answer = netlink(9, 1000, 1 | 4, b"")
    reached(f"audit answered with {len(answer)} bytes")


run(attempt)
