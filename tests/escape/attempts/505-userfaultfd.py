# Makes a userfaultfd, by the system call and by the device.
# Why it matters: it stops the kernel in the middle of a copy for as long as we like; most race exploits use it.
# When it works: a descriptor comes back.
# control: host-root
import fcntl
import os

from attempt import first_success, reached, run, syscall


def attempt():
    label, _ = first_success(
        (
            ("kernel faults too", lambda: syscall(323, os.O_CLOEXEC)),
            ("user faults only", lambda: syscall(323, os.O_CLOEXEC | 1)),
            ("/dev/userfaultfd", lambda: fcntl.ioctl(os.open("/dev/userfaultfd", os.O_RDWR), 0xAA00, 0)),
        )
    )
    reached(f"userfaultfd: {label}")


run(attempt)
