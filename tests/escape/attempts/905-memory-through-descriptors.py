# Holds more memory than its limit in memfds and pipes.
# Why it matters: as 904, without a file anywhere.
# When it works: a quarter more than the limit is written and stays.
# needs: own-sandbox
# control: host-root
import os
import signal

from attempt import blocked, escaped, fact, name_of, run


def attempt():
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    limit, written = int(fact("MEMORY_LIMIT")), 0
    chunk = os.urandom(1 << 20)
    try:
        while written <= limit * 5 // 4:
            descriptor = os.memfd_create("escape")
            for _ in range(64):
                written += os.write(descriptor, chunk)
    except OSError as error:
        blocked(f"after {written >> 20} MiB: {name_of(error)}")
    escaped(f"{written >> 20} MiB held in memfds, the limit is {limit >> 20} MiB")


run(attempt, (signal.SIGSYS, signal.SIGKILL))
