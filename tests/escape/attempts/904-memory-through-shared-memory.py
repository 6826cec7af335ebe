# Holds more memory than its limit in files of /dev/shm and other tmpfs.
# Why it matters: memory charged to nobody starves the host.
# When it works: a quarter more than the limit is written and stays.
# needs: own-sandbox
# control: host-root
import os
import signal
import sys

from attempt import blocked, escaped, fact, name_of, run


def attempt():
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    limit, written, answers = int(fact("MEMORY_LIMIT")), 0, []
    chunk = os.urandom(1 << 20)
    paths = []
    for directory in ("/dev/shm", "/run", "/tmp", "/dev"):
        if not any(line.split()[4] == directory and " - tmpfs " in line for line in open("/proc/self/mountinfo")):
            continue
        path = f"{directory}/escape-{os.getpid()}"
        try:
            with open(path, "wb", buffering=0) as file:
                paths.append(path)
                while written <= limit * 5 // 4:
                    written += file.write(chunk)
        except OSError as error:
            answers.append(f"{directory} after {written >> 20} MiB: {name_of(error)}")
    for path in paths:
        os.unlink(path)
    if written > limit * 5 // 4:
        escaped(f"{written >> 20} MiB held, the limit is {limit >> 20} MiB")
    blocked("; ".join(answers) or "no tmpfs here")


run(attempt, (signal.SIGSYS, signal.SIGKILL))
