# Moves the machine's clock by nothing, with adjtimex and clock_adjtime.
# Why it matters: there is one clock; certificates, leases and logs of the whole host go by it.
# When it works: a change of zero is taken.
# control: host-root
import ctypes
import struct

from attempt import first_success, reached, run, syscall

ADJ_SETOFFSET = 0x0100


def attempt():
    # struct timex: modes, then ten longs up to time.tv_sec and time.tv_usec (all zero): an offset of nothing.
    change = struct.pack("=I", ADJ_SETOFFSET) + bytes(204)
    label, _ = first_success(
        (
            ("adjtimex", lambda: syscall(159, ctypes.create_string_buffer(change, 208))),
            ("clock_adjtime", lambda: syscall(305, 0, ctypes.create_string_buffer(change, 208))),
        )
    )
    reached(f"{label} took a change of the clock")


run(attempt)
