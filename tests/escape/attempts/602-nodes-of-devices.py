# Makes nodes for the kernel's log, memory, loop control, FUSE, KVM, TUN and console, and opens them.
# Why it matters: a device that is not in /dev is only as far away as mknod.
# When it works: one opens.
# control: host-root
import os
import stat

from attempt import first_success, reached, run, scratch

DEVICES = {"mem": (1, 1), "kmsg": (1, 11), "loop-control": (10, 237), "fuse": (10, 229), "kvm": (10, 232), "tun": (10, 200), "console": (5, 1), "ttyS0": (4, 64), "vhost-net": (10, 238)}


def attempt():
    where = scratch("nodes")

    def open_node(name):
        path = f"{where}/{name}"
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(*DEVICES[name]))
        try:
            return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        finally:
            os.unlink(path)

    label, _ = first_success((name, lambda name=name: open_node(name)) for name in DEVICES)
    reached(f"opened {label} by a node of our own")


run(attempt)
