# Calls the kernel with x32 numbers, which a filter on plain numbers does not know.
# Why it matters: the same call under another number passes a deny-list.
# When it works: getpid answers with our pid under its x32 number.
# control: none: this kernel is built without CONFIG_X86_X32_ABI
import os

from attempt import blocked, reached, run, syscall

X32 = 0x40000000


def attempt():
    pid = syscall(X32 | 39)
    if pid == os.getpid():
        reached("x32 getpid answers")
    blocked(f"x32 getpid gave {pid}")


run(attempt)
