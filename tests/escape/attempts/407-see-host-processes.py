# Looks for the host's processes in /proc.
# Why it matters: command lines and environments of the host are full of secrets.
# When it works: the process that the host marked is in sight.
# control: weakened: host-pid
import os

from attempt import blocked, escaped, fact, run


def attempt():
    seen = [name for name in os.listdir("/proc") if name.isdigit()]
    for pid in seen:
        try:
            if pid != str(os.getpid()) and fact("HOST_MARK").encode() in open(f"/proc/{pid}/cmdline", "rb").read():
                escaped(f"process {pid} of the host is in sight")
        except OSError:
            continue
    blocked(f"{len(seen)} processes in sight, all of this sandbox")


run(attempt)
