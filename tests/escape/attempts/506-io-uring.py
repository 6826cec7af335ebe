# Sets up an io_uring.
# Why it matters: its operations pass no system-call filter, and its code has been a leading source of kernel holes.
# When it works: a ring is set up.
# control: host-root
import ctypes

from attempt import reached, run, syscall


def attempt():
    ring = syscall(425, 4, ctypes.create_string_buffer(120))
    reached(f"io_uring_setup gave descriptor {ring}")


run(attempt)
