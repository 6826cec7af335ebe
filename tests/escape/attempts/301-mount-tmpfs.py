# Mounts a tmpfs.
# Why it matters: whoever may mount anything holds the widest capability there is, and much kernel code with it.
# When it works: mount(2) returns.
# control: unshared-root
from attempt import mount, reached, run, scratch


def attempt():
    where = scratch("tmpfs")
    mount("none", where, "tmpfs")
    reached(f"mounted a tmpfs on {where}")


run(attempt)
