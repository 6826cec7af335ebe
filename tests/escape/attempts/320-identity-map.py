# Looks at what our uids are outside: whether root inside is root outside.
# Why it matters: with the identity map, any file or process of the host that becomes reachable is ours.
# When it works: uid 0 is mapped to uid 0, or to a range shared with the host's users (below 65536).
# control: host-root
from attempt import blocked, reached, run


def attempt():
    for table in ("/proc/self/uid_map", "/proc/self/gid_map"):
        for line in open(table):
            inside, outside, count = map(int, line.split())
            if outside < 65536:
                reached(f"{table}: {count} ids from {inside} are the host's ids from {outside}")
    blocked(f"ids are shifted: {open('/proc/self/uid_map').read().split()}")


run(attempt)
