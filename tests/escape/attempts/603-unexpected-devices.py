# Opens every device node in /dev that is not one of the harmless ones.
# Why it matters: each driver is kernel code, and many hand out the host's hardware.
# When it works: one opens.
# control: host-root
import os
import stat

from attempt import blocked, reached, run

HARMLESS = {(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2)}  # null zero full random urandom tty ptmx


def attempt():
    looked = 0
    for directory, _, names in os.walk("/dev"):
        for name in names:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            number = (os.major(status.st_rdev), os.minor(status.st_rdev))
            terminal = 136 <= number[0] <= 143
            if not (stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)) or number in HARMLESS or terminal:
                continue
            looked += 1
            if name.startswith("watchdog"):
                # Opening one arms it. That it is there is enough.
                reached(f"{path} is there")
            try:
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
            except OSError:
                continue
            reached(f"{path} ({number[0]}:{number[1]}) opens")
    blocked(f"{looked} nodes beyond the harmless ones, none opens")


run(attempt)
