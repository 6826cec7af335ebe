# The classic: open a directory, chroot below it, fchdir back and climb.
# Why it matters: it leaves any root that is only a chroot.
# When it works: the host's secret is read from the real root.
# control: weakened: same-filesystem
import os

from attempt import blocked, fact, read_canary, run, scratch


def attempt():
    before = os.open("/", os.O_RDONLY)
    os.chroot(scratch("jail"))
    os.fchdir(before)
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    try:
        read_canary(fact("HOST_FILE"))
    except OSError as error:
        blocked(f"climbed to the top of the mount namespace, which is the sandbox's own root: {error.strerror}")
    blocked("climbed to the top, and the file there is not the host's")


run(attempt)
