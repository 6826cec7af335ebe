# Mounts a second /proc, without the masks of the first.
# Why it matters: masks are mounts; a fresh instance has none.
# When it works: the new instance has a writable core_pattern or shows the host's processes.
# control: unshared-root
import os

from attempt import mount, reached, run, scratch


def attempt():
    where = scratch("proc")
    mount("proc", where, "proc")
    os.close(os.open(f"{where}/sys/kernel/core_pattern", os.O_WRONLY))
    reached(f"a fresh proc on {where} has a writable core_pattern")


run(attempt)
