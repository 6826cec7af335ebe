# Changes project ids and calls btrfs' own ioctls: a new subvolume, a quota limit, quotas off.
# Why it matters: disk limits are kept by these; whoever may call them has none.
# When it works: one of them is taken.
# control: weakened: btrfs
import fcntl
import os
import struct

from attempt import first_success, reached, run, scratch

FSSETXATTR, SUBVOL_CREATE, QUOTA_CTL, QGROUP_LIMIT = 0x401C5820, 0x5000940E, 0xC0109428, 0x8030942B


def attempt():
    directories = ("/", scratch("quota"), os.environ.get("ESCAPE_BTRFS", "/var/tmp"))

    def call(directory, request, argument):
        fcntl.ioctl(os.open(directory, os.O_RDONLY), request, argument)

    name = f"escape-{os.getpid()}".encode()
    label, _ = first_success(
        (f"{what} on {directory}", lambda directory=directory, request=request, argument=argument: call(directory, request, argument))
        for what, request, argument in (
            ("quotas on", QUOTA_CTL, struct.pack("=QQ", 1, 0)),
            ("a limit", QGROUP_LIMIT, struct.pack("=6Q", 0, 1, 1 << 60, 0, 0, 0)),
            ("a subvolume", SUBVOL_CREATE, bytearray(struct.pack("=q4088s", 0, name))),
            ("a project id", FSSETXATTR, struct.pack("=IIIII8x", 0, 0, 0, 4242, 0)),
        )
        for directory in directories
    )
    reached(f"took {label}")


run(attempt)
