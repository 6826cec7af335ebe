# Connects to the host's other addresses.
# Why it matters: services of the host that listen on all of them.
# When it works: the listener answers.
# control: host-root
from attempt import blocked, fact, run
from network import ask_all, summary


def attempt():
    blocked(summary(ask_all(fact("HOST_ADDRESSES").split(","), (int(fact("HOST_PORT")),))))


run(attempt)
