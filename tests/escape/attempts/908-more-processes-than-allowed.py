# Starts more processes than its limit.
# Why it matters: process ids are one pool for the whole host.
# When it works: more are alive at once than the limit allows.
# needs: own-sandbox
# control: host-root
import os
import signal

from attempt import blocked, escaped, fact, name_of, run


def attempt():
    limit, children, said = int(fact("PROCESS_LIMIT")), [], None
    try:
        while len(children) <= limit + 16:
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            children.append(pid)
    except OSError as error:
        said = name_of(error)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if len(children) > limit:
        escaped(f"{len(children)} processes at once, the limit is {limit}")
    blocked(f"stopped after {len(children)}: {said}")


run(attempt)
