# Makes a new user namespace by clone(2), whose flags sit in another argument than unshare's.
# Why it matters: filters must look at the argument of each call.
# When it works: the child exists.
# control: unshared-root
import os
import signal

from attempt import reached, run, syscall

CLONE, CLONE_NEWUSER = 56, 0x10000000


def attempt():
    pid = syscall(CLONE, CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    reached("clone(CLONE_NEWUSER) made a child")


run(attempt)
