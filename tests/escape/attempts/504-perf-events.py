# Opens performance counters: on ourselves and on the whole machine.
# Why it matters: they leak what others do, and their code has had many holes (CVE-2013-2094).
# When it works: perf_event_open returns a descriptor.
# control: host-root
import ctypes
import struct

from attempt import first_success, reached, run, syscall

PERF_EVENT_OPEN = 298


def attempt():
    # type software, size 112, config cpu-clock; flags: exclude_kernel | exclude_hv
    attributes = ctypes.create_string_buffer(struct.pack("=IIQQQQQ", 1, 112, 0, 0, 0, 0, 0x60), 112)
    label, _ = first_success(
        (
            ("on ourselves", lambda: syscall(PERF_EVENT_OPEN, attributes, 0, -1, -1, 0)),
            ("on processor 0", lambda: syscall(PERF_EVENT_OPEN, attributes, -1, 0, -1, 0)),
        )
    )
    reached(f"a performance counter {label}")


run(attempt)
