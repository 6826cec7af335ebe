# Opens every file under /sys for writing until one opens, writing nothing.
# Why it matters: sysfs is the control panel of the host's devices, power, memory and security modules.
# When it works: one opens.
# control: host-root
import os

from attempt import blocked, reached, run


def attempt():
    tried = 0
    for directory, _, names in os.walk("/sys"):
        for name in names:
            path = os.path.join(directory, name)
            tried += 1
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                continue
            reached(f"{path} opens for writing")
    blocked(f"{tried} files under /sys, none opens for writing")


run(attempt)
