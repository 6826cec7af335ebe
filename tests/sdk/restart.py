"""A server that is killed with SIGKILL, again and again, while the Python SDK follows a process's output and writes its input: no byte is lost and none comes twice.

Needs a server that is started again when it dies; BELLJAR_TEST_SERVER names the file with its process's number.
"""

import asyncio
import hashlib
import os
import signal
import threading
from pathlib import Path

import belljar
from belljar import AsyncBelljar, Belljar, Exit, Output
from lab.checks import check, checked

ROUNDS = 3
# What the process gives back is what it was given, and on standard error how much that was; it begins again with each piece.
ECHO = ["python3", "-c", "import os, sys\nn = 0\nwhile piece := os.read(0, 65536):\n    os.write(1, piece); n += len(piece)\nprint(n, file=sys.stderr)"]


class Victim:
    """The server, to be killed: once for each number that comes."""

    def __init__(self):
        self.place, self.killed = Path(os.environ["BELLJAR_TEST_SERVER"]), set()

    def kill(self):
        number = int(self.place.read_text())
        if number not in self.killed:
            self.killed.add(number)
            os.kill(number, signal.SIGKILL)


def pieces(rounds):
    """Different everywhere, so that a piece that came twice, or not, would not fit."""
    return [b"".join(b"%08d %s\n" % (line, hashlib.sha256(b"%d" % line).hexdigest().encode()) for line in range(n * 4000, (n + 1) * 4000)) for n in range(rounds)]


def echoed(client, victim):
    """Kills the server while a piece is written, and while it is read, in each round."""
    given = pieces(ROUNDS)
    with client.create() as sandbox:
        process = sandbox.start(ECHO, stdin=True, keep="1MiB", overflow="slow")
        seen, wrote = bytearray(), threading.Event()

        def write():
            for piece in given:
                victim.kill()
                process.write(piece)
            process.close_stdin()
            wrote.set()

        writer = threading.Thread(target=write)
        writer.start()
        offset, end, marks = 0, None, {len(given[0]) // 2 + n * len(given[0]) for n in range(ROUNDS)}
        for event in process:
            if isinstance(event, Exit):
                end = event
            elif isinstance(event, Output) and event.stream == "stdout":
                check("where it belongs", event.offset, offset)
                offset = event.end
                seen += event.data
                passed = {mark for mark in marks if mark < offset}
                marks -= passed
                if passed:
                    victim.kill()
        writer.join(60)
        check("all of the input was taken", wrote.is_set())
        check("all of it came back, once", (bytes(seen) == b"".join(given), len(seen)), (True, len(b"".join(given))))
        check("it ended well", end, Exit(0))
        late = process.communicate()
        check("what was read is not read again", (late.stdout_bytes, late.stderr_bytes), (b"", b""))
        again = sandbox.process(process.id)
        told = b"".join(event.data for event in again.events() if isinstance(event, Output) and event.stream == "stderr")
        check("it took each byte once", int(told), len(seen))


def runs(client, victim):
    """A command that is waited for, with input, and a request that may be repeated."""
    with client.create() as sandbox:
        killer = threading.Thread(target=victim.kill)
        killer.start()
        data = b"".join(pieces(1))
        result = sandbox.run("sleep 1; cat; echo end >&2", input=data, check=True)
        killer.join()
        check("a command goes on", (result.stdout_bytes == data, result.stderr), (True, "end\n"))
        victim.kill()
        check("what only reads is asked again", sandbox.refresh().is_running)
        victim.kill()
        with client.create() as other:
            check("a sandbox is made once", other.run("echo there").stdout, "there\n")
        check("none was made besides", [each.id for each in client.list(state="running")], [sandbox.id])


async def awaiting(victim):
    async with AsyncBelljar() as client, client.create() as sandbox:
        process = await sandbox.start("for i in $(seq 200); do echo line $i; sleep 0.02; done")
        text, killed = "", False
        async for event in process:
            if isinstance(event, Output):
                text += event.text
                if not killed and "line 50\n" in text:
                    victim.kill()
                    killed = True
        check("followed to its end", text, "".join(f"line {n}\n" for n in range(1, 201)))


def main():
    victim = Victim()
    with Belljar() as client:
        check("the server is there", client.is_ready())
        echoed(client, victim)
        runs(client, victim)
    asyncio.run(awaiting(victim))
    check("it was killed several times", len(victim.killed) >= ROUNDS)
    print(f"belljar (Python) {belljar.__version__}, {len(victim.killed)} servers killed: {checked()} checks passed")


main()
