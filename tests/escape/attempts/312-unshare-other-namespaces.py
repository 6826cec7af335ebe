# Makes new mount, pid, net, ipc, uts, cgroup and time namespaces without a new user namespace.
# Why it matters: a net namespace of our own comes with the whole network stack's configuration interfaces.
# When it works: one of the calls returns.
# control: unshared-root
from attempt import first_success, in_child, reached, run, syscall

UNSHARE = 272
KINDS = {"mount": 0x20000, "uts": 0x4000000, "ipc": 0x8000000, "pid": 0x20000000, "net": 0x40000000, "cgroup": 0x2000000, "time": 0x80}


def attempt():
    label, _ = first_success((name, lambda flag=flag: in_child(lambda: syscall(UNSHARE, flag))) for name, flag in KINDS.items())
    reached(f"a new {label} namespace")


run(attempt)
