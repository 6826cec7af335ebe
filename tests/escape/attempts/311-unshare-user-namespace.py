# Makes a new user namespace by unshare(2), in which we would hold every capability.
# Why it matters: most kernel holes of the last ten years were reached with capabilities from a fresh user namespace.
# When it works: unshare returns.
# control: unshared-root
from attempt import in_child, reached, run, syscall

UNSHARE, CLONE_NEWUSER = 272, 0x10000000


def attempt():
    in_child(lambda: syscall(UNSHARE, CLONE_NEWUSER))
    reached("unshare(CLONE_NEWUSER) returned")


run(attempt)
