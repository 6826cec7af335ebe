# Moves itself to another cgroup: opens the list of processes of every group in sight for writing.
# Why it matters: outside its group a process has no limits and survives the kill of the sandbox.
# When it works: one opens for writing. Nothing is written.
# control: host-root
import glob
import os

from attempt import first_success, reached, run


def attempt():
    paths = [path for name in ("cgroup.procs", "tasks", "cgroup.threads") for depth in ("", "*/", "*/*/", "../") for path in glob.glob(f"/sys/fs/cgroup/{depth}{name}")]
    label, _ = first_success([(path, lambda path=path: os.open(path, os.O_WRONLY)) for path in paths] + [("/sys/fs/cgroup/cgroup.procs", lambda: os.open("/sys/fs/cgroup/cgroup.procs", os.O_WRONLY))])
    reached(f"{label} opens for writing")


run(attempt)
