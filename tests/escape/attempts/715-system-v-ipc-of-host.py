# Attaches System V shared memory of the host by its key.
# Why it matters: its keys are global to an IPC namespace; databases keep everything there.
# When it works: the host's secret is read from it.
# control: host-root
import ctypes

from attempt import blocked, escaped, fact, is_canary, run, syscall

SHMGET, SHMAT = 29, 30


def attempt():
    number = syscall(SHMGET, int(fact("HOST_SHM_KEY")), 0, 0)
    address = syscall(SHMAT, number, None, 0o10000)
    if is_canary(ctypes.string_at(address)):
        escaped("read the host's secret from System V shared memory")
    blocked("a segment of that key is inside")


run(attempt)
