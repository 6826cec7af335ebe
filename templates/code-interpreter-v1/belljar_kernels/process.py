"""A kernel's process: started in a session of its own, so that a signal reaches what it started, and nothing else."""

import asyncio
import os
import signal
from typing import Optional

LAST_WORDS = 2000


class Process:
    def __init__(self, process: asyncio.subprocess.Process):
        self.process = process
        self.ended = asyncio.create_task(process.wait())
        self.last_words = b""

    @classmethod
    async def start(cls, argv: list, cwd: str, env: dict, **streams) -> "Process":
        return cls(await asyncio.create_subprocess_exec(*argv, cwd=cwd, env=env, start_new_session=True, limit=64 << 20, **streams))

    def has_ended(self) -> bool:
        return self.process.returncode is not None

    def signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            # It has ended by itself.
            pass

    def remember(self, words: bytes) -> None:
        """Keeps the end of what it said, for whoever asks why it died."""
        self.last_words = (self.last_words + words)[-LAST_WORDS:]

    def why(self) -> str:
        return self.last_words.decode("utf-8", "replace").strip() or f"it ended with status {self.process.returncode}"

    async def stop(self) -> Optional[int]:
        self.signal(signal.SIGKILL)
        return await self.ended

    async def or_end(self, awaitable):
        """Waits for something, or for the end of the process; None then."""
        wanted = asyncio.ensure_future(awaitable)
        try:
            await asyncio.wait({wanted, self.ended}, return_when=asyncio.FIRST_COMPLETED)
            return wanted.result() if wanted.done() else None
        finally:
            if not wanted.done():
                wanted.cancel()
