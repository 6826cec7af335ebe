# Asks for the physical address of our own memory (/proc/self/pagemap).
# Why it matters: hammering rows of memory needs physical addresses.
# When it works: the frame number of a page in memory is not zero.
# control: host-root
import ctypes
import struct

from attempt import blocked, reached, run


def attempt():
    page = ctypes.create_string_buffer(b"x" * 8192)
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        file.seek(ctypes.addressof(page) // 4096 * 8)
        (entry,) = struct.unpack("=Q", file.read(8))
    frame = entry & ((1 << 55) - 1)
    if entry >> 63 and frame:
        reached(f"our page is in frame {frame:#x}")
    blocked("frame numbers are hidden")


run(attempt)
