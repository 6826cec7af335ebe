# Switches process accounting off, which it already is.
# Why it matters: with a file given, it writes what the host runs into a file of ours.
# When it works: the call returns.
# control: host-root
from attempt import reached, run, syscall


def attempt():
    syscall(163, None)
    reached("acct(NULL) returned")


run(attempt)
