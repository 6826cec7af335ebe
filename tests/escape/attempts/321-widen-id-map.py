# Writes id maps of its own and of pid 1, to be given ids that it does not have.
# Why it matters: a process that maps host uid 0 into its namespace is the host's root for files.
# When it works: a map is taken.
# control: weakened: fresh-user-namespace
from attempt import first_success, reached, run


def attempt():
    def write(path):
        with open(path, "w") as file:
            file.write("0 0 1")

    label, _ = first_success((path, lambda path=path: write(path)) for path in ("/proc/self/uid_map", "/proc/1/uid_map", "/proc/self/gid_map", "/proc/1/gid_map", "/proc/self/projid_map"))
    reached(f"{label} was taken")


run(attempt)
