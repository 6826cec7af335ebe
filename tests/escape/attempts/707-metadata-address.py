# Connects to the cloud's metadata service.
# Why it matters: it hands the machine's own credentials to whoever asks.
# When it works: it answers.
# control: weakened: public-addresses
from attempt import blocked, run
from network import ask_all, summary


def attempt():
    blocked(summary(ask_all(("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254"), (80,), datagrams=False)))


run(attempt)
