# Adds a key and makes a keyring, by add_key, request_key and keyctl.
# Why it matters: keys are counted per host user and their code has had many holes (CVE-2016-0728); containers share the quota.
# When it works: the kernel gives a key.
# control: host-root
from attempt import first_success, reached, run, syscall

ADD_KEY, REQUEST_KEY, KEYCTL = 248, 249, 250


def attempt():
    label, serial = first_success(
        (
            # A session keyring of our own first, so that an unconfined run leaves nothing in its caller's.
            ("keyctl join session", lambda: syscall(KEYCTL, 1, None)),
            ("add_key", lambda: syscall(ADD_KEY, b"user", b"escape", b"x", 1, -2)),
            ("request_key", lambda: syscall(REQUEST_KEY, b"user", b"escape", None, -2)),
        )
    )
    reached(f"{label} gave key {serial}")


run(attempt)
