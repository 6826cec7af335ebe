# Overwrites the agent's program, which all sandboxes share as a layer.
# Why it matters: if the write reaches the shared layer, every later sandbox runs our agent.
# When it works: the file of another filesystem than the root's takes a write. (The suite also compares the layer on the host.)
# control: weakened: shared-agent
import os

from attempt import blocked, escaped, first_success, run


def attempt():
    path = "/.belljar/guest"
    label, file = first_success(
        (
            ("O_WRONLY", lambda: os.open(path, os.O_WRONLY)),
            ("/proc/1/exe", lambda: os.open("/proc/1/exe", os.O_WRONLY)),
            ("O_WRONLY after chmod", lambda: (os.chmod(path, 0o777), os.open(path, os.O_WRONLY))[1]),
        )
    )
    if os.fstat(file).st_dev != os.stat("/").st_dev:
        escaped(f"{label}: {path} is writable and is not on our own filesystem")
    blocked(f"{label}: opened, but that made a copy in our own upper layer")


run(attempt)
