# Looks for a cgroup hierarchy whose release_agent can be written, mounting one if need be; writes back what is there.
# Why it matters: the host's kernel runs that program as root when a group empties (CVE-2022-0492).
# When it works: the file takes a write.
# control: unshared-root
import glob
import os

from attempt import first_success, mount, reached, run, scratch, syscall


def attempt():
    def rewrite(path):
        value = open(path).read()
        with open(path, "w") as file:
            file.write(value or "\n")

    def mounted(kind):
        where = scratch(kind)
        mount("none", where, "cgroup", 0, kind)
        rewrite(where + "/release_agent")

    def in_new_namespaces(kind):
        syscall(272, 0x10000000 | 0x20000 | 0x2000000)
        mounted(kind)

    label, _ = first_success(
        [(path, lambda path=path: rewrite(path)) for path in glob.glob("/sys/fs/cgroup/*/release_agent") + ["/sys/fs/cgroup/release_agent"]]
        + [(f"mounted {kind}", lambda kind=kind: mounted(kind)) for kind in ("memory", "pids", "rdma")]
        + [("in namespaces of our own", lambda: in_new_namespaces("memory"))]
    )
    reached(f"release_agent takes a write: {label}")


run(attempt)
