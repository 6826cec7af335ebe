# Opens the loop devices' control and takes a free one.
# Why it matters: a loop device feeds the kernel's filesystem code an image that we wrote.
# When it works: the control opens, or a loop device does.
# control: host-root
import glob
import os

from attempt import first_success, reached, run


def attempt():
    label, _ = first_success((path, lambda path=path: os.open(path, os.O_RDWR)) for path in ["/dev/loop-control", *glob.glob("/dev/loop[0-9]*"), "/dev/btrfs-control", "/dev/mapper/control"])
    reached(f"{label} opens for writing")


run(attempt)
