# Makes user and mount namespaces, becomes root there, and bind-mounts over and under the masks.
# Why it matters: it is what an ordinary user of the host can do; inside, nobody should.
# When it works: the bind mount is made.
# control: weakened: unprivileged
import os

from attempt import in_child, mount, reached, run, scratch, syscall

UNSHARE, CLONE_NEWUSER, CLONE_NEWNS, MS_BIND, MS_REC = 272, 0x10000000, 0x20000, 4096, 16384


def attempt():
    uid, gid = os.getuid(), os.getgid()
    where = scratch("bind")

    def bind():
        syscall(UNSHARE, CLONE_NEWUSER | CLONE_NEWNS)
        open("/proc/self/setgroups", "w").write("deny")
        open("/proc/self/uid_map", "w").write(f"0 {uid} 1")
        open("/proc/self/gid_map", "w").write(f"0 {gid} 1")
        mount("/proc", where, "none", MS_BIND | MS_REC)

    in_child(bind)
    reached(f"root of a new user namespace bound /proc to {where}")


run(attempt)
