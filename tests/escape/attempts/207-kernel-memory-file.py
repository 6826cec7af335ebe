# Reads the host's memory through /proc/kcore, /dev/mem and /dev/kmem.
# Why it matters: it is all of the host's memory.
# When it works: bytes come out.
# control: none: this kernel is built without CONFIG_PROC_KCORE and CONFIG_DEVMEM
import os

from attempt import first_success, reached, run


def attempt():
    label, data = first_success(
        (path, lambda path=path: os.read(os.open(path, os.O_RDONLY), 64)) for path in ("/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port")
    )
    if data:
        reached(f"{label} gives {data[:4]!r}")
    raise OSError(61, f"{label} is empty")


run(attempt)
