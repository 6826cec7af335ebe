# Gives a program file capabilities (security.capability) and runs it as an ordinary user.
# Why it matters: file capabilities are how a user becomes powerful without being root.
# When it works: the program has CAP_SYS_ADMIN in its effective set.
# control: host-root
import os
import shutil
import struct
import subprocess

from attempt import blocked, name_of, reached, run, scratch

CAP_SYS_ADMIN = 21


def attempt():
    where = scratch("setcap")
    os.chmod(where, 0o755)
    program = shutil.copy("/bin/cat", where)
    # Version 2: permitted and inheritable words, with the "effective" bit in the magic.
    value = struct.pack("<5I", 0x02000001, 1 << CAP_SYS_ADMIN, 0, 0, 0)
    try:
        os.setxattr(program, "security.capability", value)
    except OSError as error:
        blocked(f"setting file capabilities: {name_of(error)}")
    as_user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        status = subprocess.run([program, "/proc/self/status"], capture_output=True, text=True, **as_user)
    except OSError as error:
        blocked(f"running it: {name_of(error)}")
    effective = next(line.split()[1] for line in status.stdout.splitlines() if line.startswith("CapEff"))
    if int(effective, 16) >> CAP_SYS_ADMIN & 1:
        reached(f"a file with capabilities runs with CapEff {effective}")
    blocked(f"the file was marked, but runs with CapEff {effective}")


run(attempt)
