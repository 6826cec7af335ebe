# Opens every sysctl for writing, writing nothing.
# Why it matters: one global sysctl left writable is a setting of the host in the sandbox's hands.
# When it works: a file under /proc/sys opens for writing.
# control: host-root
import os

from attempt import blocked, reached, run


def attempt():
    tried = 0
    for directory, _, names in os.walk("/proc/sys"):
        for name in names:
            path = os.path.join(directory, name)
            tried += 1
            try:
                os.close(os.open(path, os.O_WRONLY))
            except OSError:
                continue
            reached(f"{path} opens for writing")
    blocked(f"{tried} sysctls, none opens for writing")


run(attempt)
