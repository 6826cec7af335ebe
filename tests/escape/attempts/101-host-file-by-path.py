# Reads a file of the host by its path.
# Why it matters: a bind mount too many, or a root that was never changed, and everything on the host is readable.
# When it works: the host's secret is read and its hash matches.
# control: host-root
from attempt import blocked, fact, read_canary, run


def attempt():
    read_canary(fact("HOST_FILE"))
    blocked("a file is there, but it is not the host's")


run(attempt)
