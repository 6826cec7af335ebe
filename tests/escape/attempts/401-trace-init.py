# Attaches to pid 1, the agent, with ptrace.
# Why it matters: the agent holds the token of this run and the host's trust.
# When it works: attaching returns.
# control: weakened: traceable-init
import os

from attempt import first_success, in_child, reached, run, syscall

PTRACE, PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_DETACH = 101, 16, 0x4206, 17


def attempt():
    # In a child: whatever happens to the tracer, the tracee is let go.
    label, _ = first_success(
        (("PTRACE_SEIZE", lambda: in_child(lambda: syscall(PTRACE, PTRACE_SEIZE, 1, 0, 0))), ("PTRACE_ATTACH", lambda: in_child(lambda: syscall(PTRACE, PTRACE_ATTACH, 1, 0, 0))))
    )
    # Not `reached`: the agent counts, whichever kernel it runs on.
    from attempt import escaped

    escaped(f"{label} on pid 1 returned")


run(attempt)
