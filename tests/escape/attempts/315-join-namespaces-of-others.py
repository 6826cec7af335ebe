# Joins the namespaces of every process in sight that are not ours.
# Why it matters: one process of the host in sight, and its mount namespace is the host's root.
# When it works: setns returns for a namespace that is not the one we are in.
# control: weakened: host-pid
import os

from attempt import blocked, in_child, name_of, reached, run, syscall

SETNS = 308


def attempt():
    answers = set()
    for pid in sorted((name for name in os.listdir("/proc") if name.isdigit()), key=int):
        for kind in ("mnt", "net", "ipc", "uts", "pid", "cgroup", "user"):
            door = f"/proc/{pid}/ns/{kind}"
            try:
                if os.readlink(door) == os.readlink(f"/proc/self/ns/{kind}"):
                    continue
                file = os.open(door, os.O_RDONLY)
                in_child(lambda: syscall(SETNS, file, 0))
            except OSError as error:
                answers.add(f"{kind}: {name_of(error)}")
                continue
            reached(f"joined {door}")
    # Our own namespaces, to hear what the filter says even when nobody else is in sight.
    try:
        in_child(lambda: syscall(SETNS, os.open("/proc/self/ns/uts", os.O_RDONLY), 0))
        answers.add("our own: allowed")
    except OSError as error:
        answers.add(f"our own: {name_of(error)}")
    blocked("; ".join(sorted(answers)))


run(attempt)
