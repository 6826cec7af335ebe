"""A kernel of ours for a language without one that can be had: requests as lines on its standard input, events as lines on descriptor 3.

    {"code", "env", "after"}  ->  {"event": "began" | "stdout" | "stderr" | "result" | "error", ...}, at last {"event": "done"}

What its process, or a child of it, writes to the ordinary streams is output too.
"""

import asyncio
import json
import os
import signal

from .execution import Execution, KernelLost
from .languages import Language
from .process import Process
from .refusal import Refusal

SLOWEST_START = 120.0
LONGEST_EVENT = 64 << 20


class LinesKernel:
    def __init__(self, language: Language):
        self.language = language
        self.process = None
        self.events = None
        self.listeners = []
        self.execution = None
        self.count = 0

    async def start(self, cwd: str, env: dict) -> None:
        reading, writing = os.pipe()
        # Three is where the kernel looks for it.
        pipe, script = asyncio.subprocess.PIPE, 'exec "$@" 3>&"$BELLJAR_EVENTS"'
        env = {**env, "BELLJAR_EVENTS": str(writing)}
        try:
            argv = ["/bin/bash", "-c", script, "kernel", *self.language.argv]
            self.process = await Process.start(argv, cwd, env, stdin=pipe, stdout=pipe, stderr=pipe, pass_fds=[writing])
        finally:
            os.close(writing)
        self.events = asyncio.StreamReader(limit=LONGEST_EVENT)
        protocol = asyncio.StreamReaderProtocol(self.events)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(reading, "rb", 0))
        streams = [("stdout", self.process.process.stdout), ("stderr", self.process.process.stderr)]
        self.listeners = [asyncio.create_task(self.listen(name, stream)) for name, stream in streams]
        try:
            ready = await asyncio.wait_for(self.process.or_end(self.next()), SLOWEST_START)
        except asyncio.TimeoutError:
            raise Refusal("failed", f"the {self.language.name} kernel did not answer within {SLOWEST_START:g} s") from None
        if ready is None:
            raise Refusal("failed", f"the {self.language.name} kernel did not start: {self.process.why()}")

    async def next(self):
        """The next event; None at their end."""
        try:
            line = await self.events.readline()
            return json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            return None

    async def listen(self, name: str, stream: asyncio.StreamReader) -> None:
        while words := await stream.read(65536):
            self.process.remember(words)
            if self.execution is not None:
                self.execution.output(name, words.decode("utf-8", "replace"))

    def interrupt(self) -> None:
        if self.execution is not None:
            self.process.signal(signal.SIGINT)

    async def stop(self) -> None:
        if self.process is not None:
            await self.process.stop()
        for listener in self.listeners:
            listener.cancel()

    async def execute(self, code: str, env: dict, after: dict, execution: Execution) -> None:
        self.execution = execution
        self.count += 1
        execution.tell("began", count=self.count)
        try:
            stdin = self.process.process.stdin
            stdin.write(json.dumps({"code": code, "env": env, "after": after}).encode() + b"\n")
            await stdin.drain()
            while True:
                event = await self.process.or_end(self.next())
                if event is None:
                    raise KernelLost()
                kind = event.pop("event", None)
                if kind == "done":
                    return
                if kind in ("stdout", "stderr"):
                    execution.output(kind, event.get("text", ""))
                elif kind in ("result", "error"):
                    execution.tell(kind, **event)
        except (ConnectionError, BrokenPipeError):
            raise KernelLost() from None
        finally:
            self.execution = None
