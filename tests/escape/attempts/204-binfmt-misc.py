# Opens the register of binary formats for writing, mounting it first if need be; registers nothing.
# Why it matters: a format with the C flag runs our interpreter with the rights of the host program that execs.
# When it works: the register opens for writing.
# control: unshared-root
import os

from attempt import first_success, mount, reached, run, scratch


def attempt():
    def mounted():
        where = scratch("binfmt")
        mount("binfmt_misc", where, "binfmt_misc")
        return os.open(where + "/register", os.O_WRONLY)

    label, _ = first_success(
        (("in place", lambda: os.open("/proc/sys/fs/binfmt_misc/register", os.O_WRONLY)), ("mounted anew", mounted))
    )
    reached(f"the register of binary formats opens for writing, {label}")


run(attempt)
