"""What E2B's Python SDK costs beside the native API, in one sandbox and one run: the same command both ways in turn, and 4 MiB written and read.

Prints JSON. Needs the SDK's environment variables.
"""

import http.client
import json
import os
import sys
import time
from urllib.parse import urlparse

from e2b import Sandbox

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
WARM_UP = 10
DATA = os.urandom(4 << 20)


class Native:
    """The native API over one connection that is kept."""

    def __init__(self):
        url = urlparse(os.environ["E2B_API_URL"])
        self.connection = http.client.HTTPConnection(url.hostname, url.port)
        self.headers = {"authorization": f"Bearer {os.environ['E2B_API_KEY']}", "content-type": "application/json"}

    def run(self, sandbox, line):
        # As the SDK runs it: a login shell, as the default user.
        body = json.dumps({"argv": ["/bin/bash", "-l", "-c", line]})
        self.connection.request("POST", f"/v1/sandboxes/{sandbox}/exec", body, self.headers)
        answer = json.loads(self.connection.getresponse().read())
        assert answer["exit_code"] == 0, answer


def timed(samples, what, work):
    begun = time.perf_counter()
    result = work()
    samples.setdefault(what, []).append((time.perf_counter() - begun) * 1000)
    return result


def main():
    native, samples = Native(), {}
    sandbox = Sandbox.create(template="base", timeout=600)
    try:
        for turn in range(ROUNDS + WARM_UP):
            into = samples if turn >= WARM_UP else {}
            timed(into, "run true, native API", lambda: native.run(sandbox.sandbox_id, "true"))
            timed(into, "run true, SDK", lambda: sandbox.commands.run("true"))
        for turn in range(ROUNDS // 4 + WARM_UP):
            into = samples if turn >= WARM_UP else {}
            timed(into, "write 4 MiB, SDK", lambda: sandbox.files.write("/home/user/data", DATA))
            read = timed(into, "read 4 MiB, SDK", lambda: sandbox.files.read("/home/user/data", format="bytes"))
            assert bytes(read) == DATA
    finally:
        sandbox.kill()
    rows = {}
    for what, values in samples.items():
        values.sort()
        rows[what] = {"count": len(values), "p50": round(values[len(values) // 2], 3), "p95": round(values[len(values) * 95 // 100], 3)}
    added = rows["run true, SDK"]["p50"] - rows["run true, native API"]["p50"]
    print(json.dumps({"milliseconds": rows, "added_by_sdk_p50": round(added, 3)}))


main()
