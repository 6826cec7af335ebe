# Makes an id-mapped view of a mount with mount_setattr.
# Why it matters: it would let root inside write files under any owner it likes.
# When it works: the mount is re-mapped.
# control: weakened: fresh-tmp
import ctypes
import os
import struct

from attempt import reached, run, syscall

OPEN_TREE, MOUNT_SETATTR, MOUNT_ATTR_IDMAP, CLONE_NEWUSER = 428, 442, 0x100000, 0x10000000


def attempt():
    made, may_end = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            syscall(272, CLONE_NEWUSER)
            os.write(made[1], b"1")
        except OSError:
            os.write(made[1], b"0")
        os.close(may_end[1])
        os.read(may_end[0], 1)
        os._exit(0)
    if os.read(made[0], 1) == b"1":
        for table in ("uid_map", "gid_map"):
            with open(f"/proc/{child}/{table}", "w") as file:
                file.write("0 1000 1")
    # Refused a new one, go on with our own, to hear what the kernel says to the rest.
    namespace = os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    os.close(may_end[1])
    tree = syscall(OPEN_TREE, -100, b"/tmp", 1)
    attributes = ctypes.create_string_buffer(struct.pack("=QQQQ", MOUNT_ATTR_IDMAP, 0, 0, namespace))
    syscall(MOUNT_SETATTR, tree, b"", 0x1000, attributes, 32)
    reached("made an id-mapped mount")


run(attempt)
