# Opens the kernel's hot-plug helper setting for writing, writing nothing.
# Why it matters: the kernel runs that path as root on the host at the next device event.
# When it works: it opens.
# control: none: this kernel is built without CONFIG_UEVENT_HELPER
import os

from attempt import first_success, reached, run


def attempt():
    label, _ = first_success((path, lambda path=path: os.open(path, os.O_WRONLY)) for path in ("/sys/kernel/uevent_helper", "/proc/sys/kernel/hotplug"))
    reached(f"{label} opens for writing")


run(attempt)
