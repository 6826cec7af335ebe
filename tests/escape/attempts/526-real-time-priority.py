# Asks for real-time scheduling, a negative nice value and real-time disk priority.
# Why it matters: a real-time loop starves everything else on the host's processors.
# When it works: one of them is granted.
# control: host-root
import os

from attempt import first_success, in_child, reached, run, syscall


def attempt():
    label, _ = first_success(
        (
            ("SCHED_FIFO", lambda: in_child(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))),
            ("SCHED_RR", lambda: in_child(lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)))),
            ("nice -20", lambda: in_child(lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))),
            ("real-time disk priority", lambda: in_child(lambda: syscall(251, 1, 0, (1 << 13) | 0))),
        )
    )
    reached(f"granted {label}")


run(attempt)
