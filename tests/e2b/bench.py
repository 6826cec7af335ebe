"""What E2B's Python SDK costs beside the native API, in one sandbox and one run: the same command both ways in turn, and 4 MiB written and read.

Beside the files it measures what nobody can do without: the same calls of the SDK with a peer that does nothing, with a peer that does nothing but
keep the bytes in a file on the disk that sandboxes are on, and a program inside that writes the same. And it measures how much of two processors one gets.

Prints JSON. Needs the SDK's environment variables, and in BENCH_DISK a directory on that disk.
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
# Belljar answers before it has made the digests of both for its audit log: they must not fall into what is measured next.
DIGEST = 0.06
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


HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n"
WRITTEN = b'[{"name": "data", "path": "/home/user/data", "type": "file"}]'


class Memory:
    """Throws away what it is given, and gives from memory."""

    def take(self, piece, offset):
        pass

    def give(self, connection):
        connection.sendall(DATA)


class Disk:
    """Writes over a file that is there, as Belljar does, and gives it without a copy."""

    def __init__(self):
        path = os.path.join(os.environ["BENCH_DISK"], f"bench-{os.getpid()}")
        self.file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.unlink(path)

    def take(self, piece, offset):
        os.pwrite(self.file, piece, offset)

    def give(self, connection):
        at = 0
        while at < len(DATA):
            at += os.sendfile(connection.fileno(), self.file, at, len(DATA) - at)


class Twins:
    """The same work in two processes at once. A kernel that puts whatever wakes on a processor that is in use takes twice as long, however idle the others are."""

    WORK = 0.002

    def __init__(self):
        self.other, end = multiprocessing.Pipe()
        multiprocessing.Process(target=self.answer, args=(end,), daemon=True).start()

    def answer(self, end):
        while end.recv():
            self.work()
            end.send(True)

    def work(self):
        begun = time.process_time()
        while time.process_time() - begun < self.WORK:
            pass

    def both(self):
        self.other.send(True)
        self.work()
        self.other.recv()


def peer(told, keeper):
    """Answers the SDK as a server would that does nothing else."""
    listener, kept = socket.create_server(("127.0.0.1", 0)), keeper()
    told.put(listener.getsockname()[1])
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0], kept), daemon=True).start()


def answer(connection, kept):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    room = bytearray(1 << 18)
    while head := connection.recv(1 << 16):
        while b"\r\n\r\n" not in head:
            head += connection.recv(1 << 16)
        fields, begun = head.split(b"\r\n\r\n", 1)
        length = next((int(line.split(b":")[1]) for line in fields.lower().splitlines() if line.startswith(b"content-length:")), 0)
        done = len(begun)
        while done < length:
            got = connection.recv_into(room, min(length - done, len(room)))
            kept.take(memoryview(room)[:got], done)
            done += got
        if fields.startswith(b"GET"):
            connection.sendall(HEAD % len(DATA))
            kept.give(connection)
        else:
            connection.sendall(HEAD % len(WRITTEN) + WRITTEN)


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
        told, peers, twins = multiprocessing.Queue(), {}, Twins()
        for name, keeper in {"SDK alone": Memory, "SDK and a bare file": Disk}.items():
            multiprocessing.Process(target=peer, args=(told, keeper), daemon=True).start()
            peers[name] = Sandbox.connect(sandbox.sandbox_id, sandbox_url=f"http://127.0.0.1:{told.get()}")
        for turn in range(ROUNDS // 4 + WARM_UP):
            into = samples if turn >= WARM_UP else {}
            for name, whom in {**peers, "SDK": sandbox}.items():
                timed(into, f"write 4 MiB, {name}", lambda: whom.files.write("/home/user/data", DATA))
                read = timed(into, f"read 4 MiB, {name}", lambda: whom.files.read("/home/user/data", format="bytes"))
                assert len(read) == len(DATA)
            assert bytes(read) == DATA
            time.sleep(DIGEST)
            timed(into, "2 ms of work, two at once", twins.both)
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
