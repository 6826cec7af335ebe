# Asks for direct access to the machine's I/O ports, by iopl and ioperm.
# Why it matters: disk controllers and the reset line are I/O ports.
# When it works: the call returns.
# control: none: this kernel is built without CONFIG_X86_IOPL_IOPERM
from attempt import first_success, reached, run, syscall


def attempt():
    label, _ = first_success((("iopl", lambda: syscall(172, 3)), ("ioperm", lambda: syscall(173, 0x80, 1, 1))))
    reached(f"{label} returned")


run(attempt)
