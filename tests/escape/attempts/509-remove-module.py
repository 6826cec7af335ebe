# Asks to remove a kernel module that does not exist.
# Why it matters: removing a security module's or a network driver's code disables it.
# When it works: the kernel looks for the module (ENOENT) instead of refusing.
# control: none: this kernel is built without CONFIG_MODULES
import errno

from attempt import blocked, name_of, reached, run, syscall


def attempt():
    try:
        syscall(176, b"no_such_module_escape", 0o4000)
        reached("delete_module returned")
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            reached(f"delete_module looked for it: {name_of(error)}")
        blocked(f"delete_module: {name_of(error)}")


run(attempt)
