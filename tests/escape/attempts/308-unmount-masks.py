# Unmounts what covers the dangerous parts of /proc and /sys.
# Why it matters: under the mask lies the real file.
# When it works: umount2 returns.
# control: unshared-root
from attempt import first_success, reached, run, syscall

UMOUNT2, MNT_DETACH = 166, 2


def attempt():
    paths = [line.split()[4] for line in open("/proc/self/mountinfo")]
    # The deepest first; the root and what the control needs come last or never.
    covers = [path for path in sorted(paths, key=len, reverse=True) if path.startswith(("/proc/", "/sys/", "/dev/", "/sys"))]
    label, _ = first_success((path, lambda path=path: syscall(UMOUNT2, path.encode(), MNT_DETACH)) for path in covers + ["/proc", "/dev"])
    reached(f"unmounted {label}")


run(attempt)
