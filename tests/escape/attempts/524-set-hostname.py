# Sets the host name and the domain name.
# Why it matters: in the host's UTS namespace it renames the machine; in our own it shows a capability too many.
# When it works: the kernel takes a name.
# control: unshared-root
import os

from attempt import first_success, reached, run, syscall


def attempt():
    name = os.uname().nodename.encode()
    label, _ = first_success((("sethostname", lambda: syscall(170, name, len(name))), ("setdomainname", lambda: syscall(171, b"(none)", 6))))
    reached(f"{label} returned")


run(attempt)
