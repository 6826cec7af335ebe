# Makes a new user namespace by clone3(2), whose flags lie in memory where no filter can look.
# Why it matters: a filter that allows clone3 cannot tell a thread from a namespace.
# When it works: the child exists.
# control: unshared-root
import ctypes
import os
import signal
import struct

from attempt import reached, run, syscall

CLONE3, CLONE_NEWUSER = 435, 0x10000000


def attempt():
    # flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls
    arguments = ctypes.create_string_buffer(struct.pack("=8Q", CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0))
    pid = syscall(CLONE3, arguments, 64)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    reached("clone3(CLONE_NEWUSER) made a child")


run(attempt)
