# Mounts an overlay in namespaces of our own (CVE-2021-3493, CVE-2023-0386 start like this).
# Why it matters: an overlay of ours copies up files with owners and capabilities that we choose.
# When it works: the overlay is mounted.
# control: weakened: unprivileged
import os

from attempt import in_child, mount, reached, run, scratch, syscall


def attempt():
    base = scratch("overlay")
    uid, gid = os.getuid(), os.getgid()

    def overlay():
        syscall(272, 0x10000000 | 0x20000)
        open("/proc/self/setgroups", "w").write("deny")
        open("/proc/self/uid_map", "w").write(f"0 {uid} 1")
        open("/proc/self/gid_map", "w").write(f"0 {gid} 1")
        mount("none", base, "tmpfs")
        for name in ("lower", "upper", "work", "merged"):
            os.mkdir(f"{base}/{name}")
        mount("overlay", f"{base}/merged", "overlay", 0, f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work")

    in_child(overlay)
    reached("mounted an overlay as root of a new user namespace")


run(attempt)
