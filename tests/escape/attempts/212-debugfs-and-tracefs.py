# Reads the kernel's debugging and tracing filesystems, in place and mounted anew.
# Why it matters: tracing sees, and can change, what every process of the host does.
# When it works: one of them lists its content.
# control: unshared-root
import os

from attempt import first_success, mount, reached, run, scratch


def attempt():
    def listing(path):
        names = os.listdir(path)
        if not names:
            raise OSError(61, "empty")
        return names

    def mounted(kind):
        where = scratch(kind)
        mount(kind, where, kind)
        return listing(where)

    label, names = first_success(
        [(path, lambda path=path: listing(path)) for path in ("/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf", "/sys/kernel/security")]
        + [(kind, lambda kind=kind: mounted(kind)) for kind in ("debugfs", "tracefs", "securityfs", "bpf", "pstore", "configfs")]
    )
    reached(f"{label} holds {names[:4]}")


run(attempt)
