# Makes itself exempt from the out-of-memory killer.
# Why it matters: the kernel then kills somebody else for what we take.
# When it works: oom_score_adj takes -1000.
# control: host-root, if cap_sys_resource
import os

from attempt import blocked, reached, run


def attempt():
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-1000")
    value = open("/proc/self/oom_score_adj").read().strip()
    if value == "-1000":
        reached("oom_score_adj is -1000")
    blocked(f"oom_score_adj is {value}")


run(attempt)
