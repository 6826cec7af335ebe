# Looks for a key of the host's user in the keyrings: session, user, and by searching for its name.
# Why it matters: keyrings are not in any namespace but the user's; login tickets and disk keys live there.
# When it works: the host's key is found and read.
# control: host-root
import ctypes

from attempt import escaped, fact, first_success, is_canary, run, syscall

KEYCTL, SEARCH, READ = 250, 10, 11


def attempt():
    def find(ring):
        key = syscall(KEYCTL, SEARCH, ring, b"user", fact("HOST_KEY").encode(), 0)
        buffer = ctypes.create_string_buffer(4096)
        size = syscall(KEYCTL, READ, key, buffer, 4096)
        if not is_canary(buffer.raw[:size]):
            raise OSError(2, "another key of that name")

    label, _ = first_success((name, lambda ring=ring: find(ring)) for name, ring in (("session", -3), ("user", -4), ("user session", -5), ("by number", int(fact("HOST_KEYRING")))))
    escaped(f"read the host's key through the {label} keyring")


run(attempt)
