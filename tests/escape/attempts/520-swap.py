# Asks to swap to a file that is no swap file.
# Why it matters: swap on a file of ours takes other tenants' memory out of the kernel, to where we can read it.
# When it works: the kernel looks into the file (EINVAL) instead of refusing.
# control: host-root
import errno
import os

from attempt import blocked, name_of, reached, run, scratch, syscall


def attempt():
    path = scratch("swap") + "/file"
    with open(path, "wb") as file:
        file.write(b"\0" * 65536)
    os.chmod(path, 0o600)
    try:
        syscall(167, path.encode(), 0)
        reached("swapon returned")
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            reached(f"swapon looked into the file: {name_of(error)}")
        blocked(f"swapon: {name_of(error)}")


run(attempt)
