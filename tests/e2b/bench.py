"""What E2B's Python SDK costs beside the native API, in one sandbox and one run: the same command both ways in turn, and 4 MiB written and read.

Beside the files it measures what nobody can do without: the same calls of the SDK with a peer that does nothing, and a program inside that writes
the same to the same disk.

Prints JSON. Needs the SDK's environment variables.
"""

import http.client
import json
import multiprocessing
import os
import socket
import sys
import threading
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


WRITTEN = b'[{"name": "data", "path": "/home/user/data", "type": "file"}]'


def idle_peer(told):
    """Takes what is sent and throws it away; gives what is asked for from memory."""
    listener = socket.create_server(("127.0.0.1", 0))
    told.put(listener.getsockname()[1])
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def answer(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    room = bytearray(1 << 20)
    while head := connection.recv(1 << 16):
        while b"\r\n\r\n" not in head:
            head += connection.recv(1 << 16)
        fields, begun = head.split(b"\r\n\r\n", 1)
        length = next((int(line.split(b":")[1]) for line in fields.lower().splitlines() if line.startswith(b"content-length:")), 0)
        left = length - len(begun)
        while left > 0:
            left -= connection.recv_into(room, min(left, len(room)))
        content = DATA if fields.startswith(b"GET") else WRITTEN
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(content) + content)


INSIDE = """
import os, sys, time
data = os.urandom(1 << 16)
for _ in range(int(sys.argv[1])):
    begun = time.perf_counter()
    with open("/home/user/inside", "wb", 0) as file:
        for _ in range(64):
            file.write(data)
    print((time.perf_counter() - begun) * 1000)
"""


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
        told = multiprocessing.Queue()
        peer = multiprocessing.Process(target=idle_peer, args=(told,), daemon=True)
        peer.start()
        alone = Sandbox.connect(sandbox.sandbox_id, sandbox_url=f"http://127.0.0.1:{told.get()}")
        for turn in range(ROUNDS // 4 + WARM_UP):
            into = samples if turn >= WARM_UP else {}
            timed(into, "write 4 MiB, SDK alone", lambda: alone.files.write("/home/user/data", DATA))
            timed(into, "read 4 MiB, SDK alone", lambda: alone.files.read("/home/user/data", format="bytes"))
            timed(into, "write 4 MiB, SDK", lambda: sandbox.files.write("/home/user/data", DATA))
            read = timed(into, "read 4 MiB, SDK", lambda: sandbox.files.read("/home/user/data", format="bytes"))
            assert bytes(read) == DATA
        sandbox.files.write("/home/user/inside.py", INSIDE)
        inside = sandbox.commands.run(f"python3 /home/user/inside.py {ROUNDS // 4 + WARM_UP}").stdout.split()
        samples["write 4 MiB, a program inside"] = [float(value) for value in inside[WARM_UP:]]
    finally:
        sandbox.kill()
    rows = {}
    for what, values in samples.items():
        values.sort()
        rows[what] = {"count": len(values), "p50": round(values[len(values) // 2], 3), "p95": round(values[len(values) * 95 // 100], 3)}
    added = rows["run true, SDK"]["p50"] - rows["run true, native API"]["p50"]
    print(json.dumps({"milliseconds": rows, "added_by_sdk_p50": round(added, 3)}))


main()
