# Reads files of /proc that speak of the whole host and that every container runtime masks.
# Why it matters: key names, timers and schedules of other tenants.
# When it works: one of them has content.
# control: host-root
import os

from attempt import blocked, reached, run

MASKED = "keys key-users timer_list timer_stats sched_debug latency_stats scsi acpi asound interrupts slabinfo vmallocinfo diskstats partitions"


def attempt():
    for name in MASKED.split():
        path = f"/proc/{name}"
        try:
            if os.path.isdir(path):
                content = os.listdir(path)
            else:
                with open(path, "rb") as file:
                    content = file.read(200)
        except OSError:
            continue
        if content:
            reached(f"{path}: {content[:60]!r}")
    blocked("all of them are missing, empty or refused")


run(attempt)
