# Looks whether CPU quota can be left by making new sessions, other scheduling classes (batch, idle, deadline) or other groups.
# Why it matters: deadline scheduling reserves processor time of the host past any quota.
# When it works: SCHED_DEADLINE is granted.
# control: host-root
import ctypes
import struct

from attempt import in_child, reached, run, syscall


def attempt():
    # size, policy deadline, flags, nice, priority, runtime, deadline, period (nanoseconds)
    wish = ctypes.create_string_buffer(struct.pack("=IIQiIQQQ", 48, 6, 0, 0, 0, 1_000_000, 10_000_000, 10_000_000))
    in_child(lambda: syscall(314, 0, wish, 0))
    reached("SCHED_DEADLINE was granted")


run(attempt)
