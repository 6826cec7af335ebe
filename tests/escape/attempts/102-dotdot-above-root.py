# Climbs above the root with `..`, from the root and from deep directories.
# Why it matters: a root that is only a chroot, with a working directory outside, is left by climbing.
# When it works: the host's secret is read.
# control: weakened: outside-cwd
import os

from attempt import blocked, fact, name_of, read_canary, run


def attempt():
    answers = []
    climb = "../" * 40 + fact("HOST_FILE").lstrip("/")
    # First from where we were started: chdir would bring us back under the root.
    for start in (None, "/", "/proc/self", "/dev", "/tmp"):
        try:
            if start:
                os.chdir(start)
            read_canary(climb)
        except OSError as error:
            answers.append(f"{start}: {name_of(error)}")
    blocked("; ".join(answers))


run(attempt)
