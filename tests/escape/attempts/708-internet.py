# Connects to public addresses from a sandbox whose slot is closed.
# Why it matters: code that may not talk out must not talk out.
# When it works: anything answers.
# control: weakened: public-addresses
from attempt import blocked, run
from network import ask_all, summary


def attempt():
    blocked(summary(ask_all(("1.1.1.1", "8.8.8.8", "9.9.9.9"), (443, 80), datagrams=False)))


run(attempt)
