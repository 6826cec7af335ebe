# Writes kernel.core_pattern (the same value, so that nothing changes if it works).
# Why it matters: a pattern that starts with `|` makes the host's kernel run a program of ours as root on the next crash.
# When it works: the write is taken.
# control: host-root
import os

from attempt import reached, run


def attempt():
    path = "/proc/sys/kernel/core_pattern"
    value = open(path).read()
    file = os.open(path, os.O_WRONLY)
    os.write(file, value.encode())
    reached(f"{path} is writable (wrote back {value.strip()!r})")


run(attempt)
