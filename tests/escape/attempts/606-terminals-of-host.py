# Opens the host's pseudo-terminals: /dev/ptmx of the host's devpts, and a devpts of our own without newinstance.
# Why it matters: a shared devpts holds the terminals of everybody on the host.
# When it works: the host's terminal is in sight with its own number.
# control: host-root
import os

from attempt import blocked, escaped, fact, run


def attempt():
    path = fact("HOST_TTY")
    status = os.stat(path)
    here = sorted(os.listdir("/dev/pts"))
    # Ours starts at 0 in an instance of our own; the host's number is only there if the instance is the host's.
    if status.st_uid == int(fact("HOST_TTY_OWNER")):
        escaped(f"{path} of the host is in sight among {here}")
    blocked(f"{path} is a terminal of this sandbox")


run(attempt)
