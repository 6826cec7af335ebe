# Opens a POSIX message queue of the host.
# Why it matters: as 715; queues are named, and belong to the IPC namespace.
# When it works: it opens.
# control: host-root
from attempt import escaped, fact, run, syscall


def attempt():
    queue = syscall(240, fact("HOST_QUEUE").encode(), 0, 0, None)
    escaped(f"opened the host's message queue as descriptor {queue}")


run(attempt)
