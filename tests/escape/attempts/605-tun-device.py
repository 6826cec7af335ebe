# Makes a network interface of its own through /dev/net/tun.
# Why it matters: packets with any address can be fed to the kernel through it.
# When it works: the interface is made.
# control: unshared-root
import fcntl
import os
import struct

from attempt import reached, run


def attempt():
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", b"escape0", 1 | 0x1000))
    reached("made the interface escape0")


run(attempt)
