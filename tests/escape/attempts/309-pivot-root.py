# Changes the root of the mount namespace and looks at what was behind the old one.
# Why it matters: an old root that is still mounted behind ours is the host's.
# When it works: pivot_root returns.
# control: weakened: fresh-tmp
import os

from attempt import reached, run, scratch, syscall

PIVOT_ROOT = 155


def attempt():
    where = scratch("root")
    os.makedirs(where + "/old", exist_ok=True)
    try:
        # A mount of its own is what pivot_root wants; without it, we still learn what it says.
        syscall(165, b"none", where.encode(), b"tmpfs", 0, None)
        os.makedirs(where + "/old", exist_ok=True)
    except OSError:
        pass
    syscall(PIVOT_ROOT, where.encode(), (where + "/old").encode())
    reached("pivot_root returned")


run(attempt)
