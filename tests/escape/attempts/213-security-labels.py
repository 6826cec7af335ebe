# Writes its own security label, in /proc/self/attr.
# Why it matters: a process that labels itself walks out of SELinux, AppArmor or Smack confinement.
# When it works: the kernel takes a label.
# control: none: no security module on this host has a policy with labels, so no label is ever taken
import glob
import os

from attempt import first_success, reached, run


def attempt():
    label, _ = first_success(
        (f"{path} {value}", lambda path=path, value=value: os.write(os.open(path, os.O_WRONLY), value))
        for path in sorted(glob.glob("/proc/self/attr/**/*", recursive=True))
        if os.path.basename(path) in ("current", "exec", "fscreate", "keycreate", "sockcreate")
        for value in (b"unconfined", b"system_u:system_r:unconfined_t:s0", b"changeprofile unconfined")
    )
    reached(f"wrote {label}")


run(attempt)
