# Clones the mount tree with open_tree and attaches it elsewhere with move_mount.
# Why it matters: a cloned tree can be attached without the masks that cover it.
# When it works: the clone is made and attached.
# control: unshared-root
from attempt import reached, run, scratch, syscall

OPEN_TREE, MOVE_MOUNT = 428, 429
OPEN_TREE_CLONE, AT_RECURSIVE, MOVE_MOUNT_F_EMPTY_PATH = 1, 0x8000, 4


def attempt():
    tree = syscall(OPEN_TREE, -100, b"/proc", OPEN_TREE_CLONE)
    where = scratch("tree")
    syscall(MOVE_MOUNT, tree, b"", -100, where.encode(), MOVE_MOUNT_F_EMPTY_PATH)
    reached(f"cloned /proc without what is mounted over it to {where}")


run(attempt)
