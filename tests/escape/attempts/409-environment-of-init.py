# Reads the environment, command line and auxiliary files of pid 1 in search of the token.
# Why it matters: a token handed over in either is everybody's.
# When it works: a 32-byte secret whose hash the suite knows is found, raw or as hex.
# control: weakened: traceable-init
import hashlib
import os
import re

from attempt import blocked, escaped, fact, run


def attempt():
    looked = 0
    for pid in ("1", *(name for name in os.listdir("/proc") if name.isdigit())):
        for name in ("environ", "cmdline", "auxv", "stack", "syscall"):
            try:
                data = open(f"/proc/{pid}/{name}", "rb").read()
            except OSError:
                continue
            looked += 1
            windows = [bytes.fromhex(text.decode()) for text in re.findall(rb"[0-9a-f]{64}", data)]
            windows += [data[at : at + 32] for at in range(max(0, len(data) - 31))]
            if any(hashlib.sha256(window).hexdigest() == fact("TOKEN_HASH") for window in windows):
                escaped(f"the token is in /proc/{pid}/{name}")
    blocked(f"{looked} files read, no token in them")


run(attempt)
