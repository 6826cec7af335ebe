# Remounts read-only mounts writable: /proc/sys, /sys, cgroups, by mount(2) and mount_setattr(2).
# Why it matters: read-only is all that keeps root inside from the host's settings.
# When it works: a remount is taken.
# control: unshared-root
import ctypes
import struct

from attempt import first_success, mount, reached, run, syscall

MS_REMOUNT, MS_BIND, MOUNT_SETATTR, MOUNT_ATTR_RDONLY = 32, 4096, 442, 1


def attempt():
    def by_mount(path):
        mount("none", path, "none", MS_REMOUNT | MS_BIND)

    def by_attribute(path):
        attributes = ctypes.create_string_buffer(struct.pack("=QQQQ", 0, MOUNT_ATTR_RDONLY, 0, 0))
        syscall(MOUNT_SETATTR, -100, path.encode(), 0, attributes, 32)

    paths = ("/proc/sys", "/sys", "/proc", "/sys/fs/cgroup", "/", "/dev")
    label, _ = first_success(
        [(f"mount {path}", lambda path=path: by_mount(path)) for path in paths]
        + [(f"mount_setattr {path}", lambda path=path: by_attribute(path)) for path in paths]
    )
    reached(f"remounted: {label}")


run(attempt)
