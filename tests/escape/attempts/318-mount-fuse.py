# Opens /dev/fuse and mounts a filesystem that we serve ourselves.
# Why it matters: a filesystem of ours can stall any host process that touches it, and feeds the kernel hostile metadata.
# When it works: the mount is made.
# control: unshared-root
import os

from attempt import mount, reached, run, scratch


def attempt():
    device = os.open("/dev/fuse", os.O_RDWR)
    mount("escape", scratch("fuse"), "fuse", 0, f"fd={device},rootmode=40000,user_id=0,group_id=0")
    reached("mounted a FUSE filesystem served by this process")


run(attempt)
