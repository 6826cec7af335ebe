# Opens /proc/sysrq-trigger for writing, writing nothing.
# Why it matters: one letter in it reboots or crashes the host.
# When it works: it opens.
# control: none: this kernel is built without CONFIG_MAGIC_SYSRQ
import os

from attempt import reached, run


def attempt():
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))
    reached("/proc/sysrq-trigger opens for writing")


run(attempt)
