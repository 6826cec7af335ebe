# Mounts the host's cgroup hierarchies.
# Why it matters: limits are files there, and on version 1 `release_agent` is a program that the host runs.
# When it works: a hierarchy is mounted and has groups in it.
# control: unshared-root
import os

from attempt import first_success, mount, reached, run, scratch


def attempt():
    where = scratch("cgroup")

    def mounted(kind, options):
        mount("none", where, kind, 0, options)
        return os.listdir(where)

    label, names = first_success(
        (f"{kind} {options or ''}", lambda kind=kind, options=options: mounted(kind, options))
        for kind, options in (("cgroup2", None), ("cgroup", "memory"), ("cgroup", "pids"), ("cgroup", "devices"), ("cgroup", "rdma"), ("cgroup", "none,name=escape"))
    )
    reached(f"mounted {label}: {names[:4]}")


run(attempt)
