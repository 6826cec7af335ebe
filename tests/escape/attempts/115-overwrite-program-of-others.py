# Overwrites the program file of a process that came from outside, through /proc/<pid>/exe (CVE-2019-5736).
# Why it matters: a runtime that enters the sandbox lends its own binary; overwritten, it runs our code on the host next time.
# When it works: such a file, on another filesystem than our root, can be opened for writing.
# control: weakened: entering-program
import os
import time

from attempt import blocked, name_of, reached, run


def attempt():
    inside = {os.stat("/").st_dev, os.stat("/usr/bin").st_dev, os.stat("/bin/sh").st_dev}
    held, answers = {}, set()
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        for pid in (name for name in os.listdir("/proc") if name.isdigit()):
            try:
                handle = os.open(f"/proc/{pid}/exe", os.O_PATH)
            except OSError as error:
                answers.add(f"/proc/<pid>/exe: {name_of(error)}")
                continue
            status = os.fstat(handle)
            if status.st_dev in inside or (status.st_dev, status.st_ino) in held:
                os.close(handle)
            else:
                held[status.st_dev, status.st_ino] = handle
        for handle in held.values():
            try:
                # Busy while it runs; the handle outlives the process. Nothing is written.
                os.close(os.open(f"/proc/self/fd/{handle}", os.O_WRONLY))
                reached(f"opened {os.readlink(f'/proc/self/fd/{handle}')}, a program from outside, for writing")
            except OSError as error:
                answers.add(f"program from outside: {name_of(error)}")
    blocked(f"{len(held)} programs from outside in sight; {'; '.join(sorted(answers))}")


run(attempt)
