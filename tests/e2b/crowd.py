"""Many clients of E2B's unmodified SDK at once: each makes a sandbox, runs commands in it, writes and reads a file, and kills it, again and again.

A quick slice by default; 200 clients for two minutes with BELLJAR_FULL=1. No error is forgiven; a server that is full says so with 503 and is asked
again, which is counted. Prints p50 and p99.
"""

import asyncio
import os
import sys
import time
import uuid

from e2b import AsyncSandbox, SandboxQuery

FULL = os.environ.get("BELLJAR_FULL", "0") != "0"
CLIENTS, SECONDS = (200, 120) if FULL else (20, 5)
MARK = uuid.uuid4().hex


class Times:
    def __init__(self):
        self.seconds = {}

    async def of(self, what, work):
        begun = time.perf_counter()
        result = await work
        self.seconds.setdefault(what, []).append(time.perf_counter() - begun)
        return result

    def show(self):
        for what, seconds in sorted(self.seconds.items()):
            seconds.sort()
            p50, p99 = (seconds[min(len(seconds) * part // 100, len(seconds) - 1)] * 1000 for part in (50, 99))
            print(f"  {what:<8} {len(seconds):>6}   p50 {p50:8.1f} ms   p99 {p99:8.1f} ms")


async def make(times, busy):
    while True:
        try:
            return await times.of("create", AsyncSandbox.create(template="base", timeout=300, metadata={"mark": MARK}))
        except Exception as error:
            if not str(error).startswith("503"):
                raise
            busy.append(1)
            await asyncio.sleep(1)


async def client(number, end, times, busy):
    rounds = 0
    while time.monotonic() < end:
        sandbox = await make(times, busy)
        for turn in range(3):
            words = f"{number}-{rounds}-{turn}"
            result = await times.of("run", sandbox.commands.run(f"echo {words}", timeout=120))
            assert (result.stdout, result.exit_code) == (f"{words}\n", 0), result
        await times.of("write", sandbox.files.write("/home/user/note", words))
        assert await times.of("read", sandbox.files.read("/home/user/note")) == words
        assert await times.of("kill", sandbox.kill())
        rounds += 1
    return rounds


async def main():
    times, busy, end = Times(), [], time.monotonic() + SECONDS
    results = await asyncio.gather(*(client(number, end, times, busy) for number in range(CLIENTS)), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    left = await AsyncSandbox.list(query=SandboxQuery(metadata={"mark": MARK})).next_items()
    rounds = sum(result for result in results if isinstance(result, int))
    print(f"e2b (Python), {CLIENTS} clients at once: {rounds} sandboxes, {len(errors)} errors, {len(busy)} times full, {len(left)} left over")
    times.show()
    for error in errors[:5]:
        print(f"  {type(error).__name__}: {error}", file=sys.stderr)
    return 1 if errors or left or not rounds else 0


# Without the interpreter's own end: whatever of many connections is half closed then has nothing to say about the server.
code = asyncio.run(main())
sys.stdout.flush()
os._exit(code)
