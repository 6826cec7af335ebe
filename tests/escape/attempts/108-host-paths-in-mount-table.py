# Looks for paths of the host in the mount table: the directories an overlay is made of.
# Why it matters: they tell an attacker where everything lies, in whose pool, beside whose files.
# When it works: an option or source names a directory of the host.
# control: weakened: overlay
import os
import re

from attempt import blocked, escaped, fact, run


def attempt():
    host = [fact("HOST_DIRECTORY"), os.path.dirname(fact("HOST_FILE"))]
    for table in ("/proc/self/mountinfo", "/proc/mounts", "/proc/self/mountstats", "/proc/1/mountinfo"):
        try:
            text = open(table).read()
        except OSError:
            continue
        for line in text.splitlines():
            named = [path for path in host if path in line]
            # A descriptor of a launcher that is long gone (/proc/self/fd/N) names nothing.
            option = re.search(r"(?:lowerdir\+?|upperdir|workdir)=(?!/proc/self/fd/)(/[^,]*)", line)
            if named or option:
                escaped(f"{table} names {named[0] if named else option.group(1)}")
    blocked("the mount table names no directory of the host")


run(attempt)
