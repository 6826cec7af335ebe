# Calls system calls that no ordinary work needs, with arguments that cannot do anything.
# Why it matters: each that answers "bad argument" instead of "not permitted" is kernel code within reach.
# When it works: EFAULT, EINVAL, EBADF or the like comes back.
# control: host-root
import errno

from attempt import blocked, in_child, name_of, reached, run, syscall

RARE = {
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "open_tree": 428, "move_mount": 429, "mount_setattr": 442,
    "pivot_root": 155, "mount": 165, "umount2": 166, "bpf": 321, "perf_event_open": 298, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "keyctl": 250, "add_key": 248, "request_key": 249, "fanotify_init": 300, "fanotify_mark": 301,
    "open_by_handle_at": 304, "quotactl": 179, "kexec_load": 246, "init_module": 175, "finit_module": 313, "delete_module": 176,
    "lookup_dcookie": 212, "move_pages": 279, "migrate_pages": 256, "setns": 308, "userfaultfd": 323, "kcmp": 312, "open_tree_attr": 467,
}
REFUSED = (errno.EPERM, errno.ENOSYS, errno.EACCES)


def attempt():
    let_through = []
    for name, number in RARE.items():
        try:
            in_child(lambda: syscall(number, -1, -1, -1, -1, -1, -1))
            let_through.append(name)
        except OSError as error:
            if error.errno not in REFUSED:
                let_through.append(f"{name} ({name_of(error)})")
    if let_through:
        reached("let through: " + ", ".join(let_through))
    blocked(f"{len(RARE)} rare calls, all refused")


run(attempt)
