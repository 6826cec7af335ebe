# Writes to its own cgroup's limits: more memory, more processes, more CPU.
# Why it matters: limits that the limited can change are none.
# When it works: a limit file opens for writing. Nothing is written.
# control: host-root
import glob
import os

from attempt import first_success, reached, run

NAMES = ("memory.max", "memory.limit_in_bytes", "pids.max", "cpu.max", "cpu.cfs_quota_us", "devices.allow", "cgroup.subtree_control", "freezer.state")


def attempt():
    paths = [path for name in NAMES for pattern in ("/sys/fs/cgroup/{}", "/sys/fs/cgroup/*/{}", "/sys/fs/cgroup/*/*/{}", "/proc/1/root/sys/fs/cgroup/*/{}") for path in glob.glob(pattern.format(name))]
    label, _ = first_success([(path, lambda path=path: os.open(path, os.O_WRONLY)) for path in paths] + [("a new group", lambda: os.rmdir(os.mkdir("/sys/fs/cgroup/escape") or "/sys/fs/cgroup/escape"))])
    reached(f"{label} opens for writing")


run(attempt)
