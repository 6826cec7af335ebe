# Reads a file in the host's /dev/shm.
# Why it matters: a shared /dev/shm is a channel to every program of the host that uses it.
# When it works: the host's secret is read there.
# control: host-root
from attempt import blocked, fact, read_canary, run


def attempt():
    read_canary("/dev/shm/" + fact("HOST_SHM_FILE"))
    blocked("a file is there, but it is not the host's")


run(attempt)
