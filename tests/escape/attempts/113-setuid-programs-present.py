# Finds every set-user-ID or set-group-ID program in the image and every file with capabilities, and sees whether one gains anything.
# Why it matters: su, mount, passwd and friends are attack surface if the bit works.
# When it works: a set-user-ID root program is executable and the process that runs it gets euid 0.
# control: host-root
import os
import subprocess

from attempt import blocked, reached, run


def attempt():
    caller = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    found = []
    for top in ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/local"):
        for directory, _, names in os.walk(top):
            for name in names:
                path = os.path.join(directory, name)
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                if status.st_mode & 0o4000 and status.st_uid == 0 and status.st_mode & 0o100000:
                    found.append(path)
    for path in found:
        # Stopped at exec by a tracer we are not: ask the kernel instead what euid the new process has.
        process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **caller)
        try:
            line = next(l for l in open(f"/proc/{process.pid}/status") if l.startswith("Uid:"))
        except (OSError, StopIteration):
            continue
        finally:
            process.kill()
            process.wait()
        if line.split()[2] == "0":
            reached(f"{path} runs with uids {line.split()[1:]}")
    blocked(f"{len(found)} such programs here, none gains anything")


run(attempt)
