# Asks for, and sets, disk quotas with quotactl and quotactl_fd.
# Why it matters: disk limits may be quotas; whoever sets them has none.
# When it works: the kernel looks at the quota (ESRCH, ENOSYS by the filesystem after opening) instead of refusing the call.
# control: host-root
import ctypes
import errno
import os

from attempt import blocked, name_of, reached, run, syscall

SET_QUOTA = 0x800008 << 8


def attempt():
    answers = []
    root = os.open("/", os.O_RDONLY)
    buffer = ctypes.create_string_buffer(128)
    for name, number, arguments in (("quotactl_fd", 443, (root, SET_QUOTA, 0, buffer)), ("quotactl", 179, (SET_QUOTA, b"/dev/vda", 0, buffer))):
        try:
            syscall(number, *arguments)
            reached(f"{name} returned")
        except OSError as error:
            if error.errno in (errno.ESRCH, errno.EINVAL):
                reached(f"{name} looked at the quota: {name_of(error)}")
            answers.append(f"{name}: {name_of(error)}")
    blocked("; ".join(answers))


run(attempt)
