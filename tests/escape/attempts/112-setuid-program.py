# Makes a set-user-ID copy of a program that belongs to root and runs it as an ordinary user.
# Why it matters: it is the oldest way up; with no_new_privs the bit must mean nothing.
# When it works: the program runs with effective uid 0 although its caller was not root.
# control: host-root
import os
import shutil
import subprocess

from attempt import blocked, reached, run, scratch


def attempt():
    program = shutil.copy("/usr/bin/id", scratch("suid"))
    os.chmod(os.path.dirname(program), 0o755)
    if os.geteuid() == 0:
        os.chown(program, 0, 0)
        os.chmod(program, 0o4755)
        caller = {"user": 65534, "group": 65534, "extra_groups": []}
    else:
        # An ordinary user has root own it by `sudo`, if that is allowed, then runs it without.
        made = subprocess.run(["sudo", "-n", "sh", "-c", f"chown 0:0 {program} && chmod 4755 {program}"], capture_output=True, text=True)
        if made.returncode != 0:
            blocked(f"no way to make one: {made.stderr or made.stdout}")
        caller = {}
    if not os.stat(program).st_mode & 0o4000:
        blocked("the set-user-ID bit does not stick")
    euid = subprocess.run([program, "-u"], capture_output=True, text=True, **caller).stdout.strip()
    if euid == "0":
        reached("a set-user-ID program runs as root")
    blocked(f"the bit is set, but the program runs with uid {euid}")


run(attempt)
