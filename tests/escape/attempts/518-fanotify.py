# Watches a whole mount or filesystem with fanotify, with the power to refuse opens.
# Why it matters: it sees and stops what every process does on that filesystem, the host's too.
# When it works: a group that can mark mounts is given.
# control: host-root
from attempt import first_success, reached, run, syscall


def attempt():
    # Class pre-content and content: the ones that can hold up others. Class notification with limits is an ordinary user's right.
    label, _ = first_success((("pre-content", lambda: syscall(300, 8, 0)), ("content", lambda: syscall(300, 4, 0)), ("notify", lambda: syscall(300, 0, 0))))
    reached(f"fanotify_init gave a group of class {label}")


run(attempt)
