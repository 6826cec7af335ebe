# Reads the host kernel's log by syslog(2), /dev/kmsg and /proc/kmsg.
# Why it matters: it holds addresses, hardware, and what other tenants did.
# When it works: there is text in it.
# control: host-root
import ctypes
import os

from attempt import blocked, first_success, reached, run, syscall


def attempt():
    def by_syslog():
        buffer = ctypes.create_string_buffer(4096)
        size = syscall(103, 3, buffer, 4096)
        return buffer.raw[:size]

    def by_file(path):
        return os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 4096)

    label, text = first_success(
        (("syslog(2)", by_syslog), ("/dev/kmsg", lambda: by_file("/dev/kmsg")), ("/proc/kmsg", lambda: by_file("/proc/kmsg")))
    )
    if not text:
        blocked(f"{label} is empty")
    reached(f"{label}: {text[:60]!r}")


run(attempt)
