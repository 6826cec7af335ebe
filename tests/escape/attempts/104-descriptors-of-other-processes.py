# Reopens the files that other processes hold, through /proc/<pid>/fd.
# Why it matters: an agent or launcher that keeps a host file open lends it to whoever may look.
# When it works: the host's secret is read from another process's descriptor.
# control: weakened: host-pid
import os
import stat

from attempt import blocked, is_canary, escaped, run


def attempt():
    seen = 0
    for pid in (name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()):
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for number in numbers:
            path = f"/proc/{pid}/fd/{number}"
            try:
                # Only plain files: opening a pipe or a terminal could hang, and holds no secret.
                if stat.S_ISREG(os.stat(path).st_mode):
                    seen += 1
                    with open(path, "rb") as file:
                        if is_canary(file.read(4096)):
                            escaped(f"read the host's secret through {path}")
            except OSError:
                continue
    blocked(f"{seen} plain files of others could be looked at, none is the host's")


run(attempt)
