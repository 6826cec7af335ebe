# Makes a filesystem through fsopen, fsconfig and fsmount, which filters written for mount(2) forget.
# Why it matters: the same power as mount(2), under other numbers.
# When it works: fsmount returns a mount.
# control: unshared-root
from attempt import reached, run, syscall

FSOPEN, FSCONFIG, FSMOUNT, FSCONFIG_CMD_CREATE = 430, 431, 432, 6


def attempt():
    context = syscall(FSOPEN, b"tmpfs", 0)
    syscall(FSCONFIG, context, FSCONFIG_CMD_CREATE, None, None, 0)
    tree = syscall(FSMOUNT, context, 0, 0)
    reached(f"fsmount gave descriptor {tree}")


run(attempt)
