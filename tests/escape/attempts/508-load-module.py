# Asks to load a kernel module, with bytes that are none, by init_module and finit_module.
# Why it matters: a module is code in the host's kernel.
# When it works: the kernel looks at the bytes (ENOEXEC, EFAULT, EBADF) instead of refusing.
# control: none: this kernel is built without CONFIG_MODULES
import ctypes
import errno

from attempt import blocked, name_of, reached, run, syscall


def attempt():
    answers = []
    nothing = ctypes.create_string_buffer(64)
    for name, number, arguments in (("init_module", 175, (nothing, 64, b"")), ("finit_module", 313, (-1, b"", 0))):
        try:
            syscall(number, *arguments)
            reached(f"{name} returned")
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
                reached(f"{name} looked at its arguments: {name_of(error)}")
            answers.append(f"{name}: {name_of(error)}")
    blocked("; ".join(answers))


run(attempt)
