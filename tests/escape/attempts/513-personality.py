# Switches off address randomisation and makes readable memory executable, by personality(2).
# Why it matters: it weakens programs of this sandbox only, but set-user-ID programs and odd loaders inherit it.
# When it works: READ_IMPLIES_EXEC is taken. (Switching randomisation off is what debuggers do, and is not held against it.)
# control: host-root
from attempt import in_child, reached, run, syscall

READ_IMPLIES_EXEC = 0x0400000


def attempt():
    in_child(lambda: syscall(135, READ_IMPLIES_EXEC))
    reached("personality(READ_IMPLIES_EXEC) was taken")


run(attempt)
