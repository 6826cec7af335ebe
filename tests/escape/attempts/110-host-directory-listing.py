# Lists the host's data directory, where all sandboxes lie, and its run directories.
# Why it matters: names of other sandboxes are the first step to them.
# When it works: the directory can be listed and holds what the host put there.
# control: host-root
import os

from attempt import escaped, fact, first_success, run


def attempt():
    label, names = first_success((path, lambda path=path: os.listdir(path)) for path in (fact("HOST_DIRECTORY"), os.path.dirname(fact("HOST_FILE"))))
    escaped(f"{label} holds {names[:5]}")


run(attempt)
