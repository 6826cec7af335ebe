# Attaches to a process of the host by its pid, and to every process in sight that is not ours.
# Why it matters: a traced process does what the tracer says, with its own rights.
# When it works: attaching to the host's process returns.
# control: weakened: host-pid
from attempt import blocked, escaped, fact, in_child, run, syscall

PTRACE, PTRACE_SEIZE = 101, 0x4206


def attempt():
    pid = int(fact("HOST_PID"))
    try:
        name = open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError as error:
        name = b""
    if fact("HOST_MARK").encode() not in name:
        # Attach all the same: /proc may be hidden from us and the number still be the host's.
        in_child(lambda: syscall(PTRACE, PTRACE_SEIZE, pid, 0, 0))
        blocked(f"pid {pid} is somebody inside, not the host's process")
    in_child(lambda: syscall(PTRACE, PTRACE_SEIZE, pid, 0, 0))
    escaped(f"attached to process {pid} of the host")


run(attempt)
