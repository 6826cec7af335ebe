# Installs a segment of its own in the local descriptor table.
# Why it matters: old, rarely used, full of corners (CVE-2015-5157); no program of today needs it.
# When it works: the entry is installed.
# control: host-root
import ctypes
import struct

from attempt import reached, run, syscall


def attempt():
    # entry 0, base 0, limit 0xfffff, seg_32bit | limit_in_pages | useable
    entry = ctypes.create_string_buffer(struct.pack("=4I", 0, 0, 0xFFFFF, 0b1010001))
    syscall(154, 1, entry, 16)
    reached("modify_ldt installed a segment")


run(attempt)
