# Writes the host's memory settings: overcommit, huge pages, dropping caches (same values; opens only where a write would act).
# Why it matters: they change how the whole host gives out memory.
# When it works: vm.overcommit_memory takes a write.
# control: host-root
import os

from attempt import first_success, reached, run


def attempt():
    def rewrite(path):
        value = open(path).read()
        os.write(os.open(path, os.O_WRONLY), value.encode())

    label, _ = first_success(
        [(path, lambda path=path: rewrite(path)) for path in ("/proc/sys/vm/overcommit_memory", "/proc/sys/vm/nr_hugepages", "/proc/sys/vm/swappiness")]
        + [(path, lambda path=path: os.open(path, os.O_WRONLY)) for path in ("/proc/sys/vm/drop_caches", "/sys/kernel/mm/transparent_hugepage/enabled")]
    )
    reached(f"{label} takes a write")


run(attempt)
