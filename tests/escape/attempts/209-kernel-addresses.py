# Reads kernel addresses from /proc/kallsyms, /proc/modules and kernel notes.
# Why it matters: they undo the kernel's address randomisation, which most exploits need first.
# When it works: an address that is not zero is shown.
# control: host-root
from attempt import blocked, reached, run


def attempt():
    for path in ("/proc/kallsyms", "/proc/modules"):
        try:
            for line in open(path):
                address = line.split()[0] if path.endswith("kallsyms") else line.split()[-1]
                if address.strip("0x"):
                    reached(f"{path}: {line.strip()}")
        except OSError:
            continue
    blocked("no address but zero is shown")


run(attempt)
