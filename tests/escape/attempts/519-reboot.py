# Asks the kernel to leave Ctrl-Alt-Del as it is: the one reboot(2) command that changes nothing.
# Why it matters: the same permission reboots the host.
# When it works: the call returns.
# control: host-root
from attempt import reached, run, syscall


def attempt():
    syscall(169, 0xFEE1DEAD, 672274793, 0x89ABCDEF, None)
    reached("reboot(CAD_ON) returned")


run(attempt)
