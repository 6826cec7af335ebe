# Asks to load another kernel, with arguments that could load none.
# Why it matters: another kernel in place of the host's.
# When it works: the kernel looks at the arguments (EINVAL, EBADF) instead of refusing (EPERM, ENOSYS).
# control: none: this kernel is built without CONFIG_KEXEC and CONFIG_KEXEC_FILE
import errno

from attempt import blocked, name_of, reached, run, syscall


def attempt():
    answers = []
    for name, number, arguments in (("kexec_load", 246, (0, 17, None, 0xFFFF)), ("kexec_file_load", 320, (-1, -1, 0, None, 0xFFFF))):
        try:
            syscall(number, *arguments)
            reached(f"{name} returned")
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
                reached(f"{name} looked at its arguments: {name_of(error)}")
            answers.append(f"{name}: {name_of(error)}")
    blocked("; ".join(answers))


run(attempt)
