# Reads the agent's boot configuration, where the token of this run is handed over.
# Why it matters: with the token, user code can pose as the host towards the agent, or as the agent towards the host.
# When it works: the token is found in it, raw or as hex.
# control: weakened: shared-agent
import hashlib
import os
import re

from attempt import blocked, escaped, fact, name_of, run


def attempt():
    answers = []
    for directory in ("/.belljar", "/run/belljar", "/proc/1/root/.belljar", "/run", "/tmp"):
        try:
            paths = [os.path.join(directory, name) for name in os.listdir(directory)]
        except OSError as error:
            answers.append(f"{directory}: {name_of(error)}")
            continue
        for path in paths:
            # The agent's own program is there too; it is not small.
            if not os.path.isfile(path) or os.path.getsize(path) > 65536:
                continue
            try:
                data = open(path, "rb").read()
            except OSError as error:
                answers.append(f"{path}: {name_of(error)}")
                continue
            windows = [bytes.fromhex(text.decode()) for text in re.findall(rb"[0-9a-f]{64}", data)] + [data[at : at + 32] for at in range(max(0, len(data) - 31))]
            if any(hashlib.sha256(window).hexdigest() == fact("TOKEN_HASH") for window in windows):
                escaped(f"the token is in {path}")
    blocked("; ".join(answers) or "no file there holds it")


run(attempt)
