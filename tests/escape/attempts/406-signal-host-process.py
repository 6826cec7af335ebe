# Sends signal 0 to a process of the host by its pid, and by a pidfd.
# Why it matters: what can be signalled can be killed.
# When it works: the signal is delivered to the process that the host marked.
# control: weakened: host-pid
import os

from attempt import blocked, escaped, fact, run


def attempt():
    pid = int(fact("HOST_PID"))
    os.kill(pid, 0)
    name = open(f"/proc/{pid}/cmdline", "rb").read()
    if fact("HOST_MARK").encode() in name:
        escaped(f"process {pid} of the host takes our signals")
    blocked(f"pid {pid} is somebody inside: {name[:40]!r}")


run(attempt)
