"""One run of code in a context, from waiting for its turn to its last event."""

import asyncio
import time

from .refusal import Refusal

# How long code that was told to stop may go on before its kernel is replaced.
GRACE = 8.0


class KernelLost(Exception):
    """The kernel's process has ended."""


class Execution:
    def __init__(self, context, code: str, env: dict, base_env: dict, deadline):
        self.context = context
        self.code = code
        self.env = env
        self.base_env = base_env
        self.deadline = deadline
        self.events: asyncio.Queue = asyncio.Queue()
        self.ended = False
        self.task = None
        self.began = False

    def tell(self, event: str, **fields) -> None:
        if not self.ended:
            self.events.put_nowait({"event": event, **fields})

    def output(self, stream: str, text: str) -> None:
        if text:
            self.tell(stream, text=text, at=int(time.time() * 1000))

    def end(self) -> None:
        self.tell("end")
        self.ended = True

    def lose(self, why: str) -> None:
        self.tell("lost", message=why)
        self.end()

    def abandon(self) -> None:
        """Nobody listens any more: what still runs is stopped."""
        if self.ended or self.task is None:
            return
        self.ended = True
        if self.began:
            asyncio.create_task(self.stop_running())
        else:
            self.task.cancel()

    async def stop_running(self) -> None:
        """Interrupts, and replaces a kernel that does not heed it."""
        kernel = self.context.kernel
        if kernel is None:
            return
        for _ in range(2):
            kernel.interrupt()
            done, _running = await asyncio.wait({self.task}, timeout=GRACE / 2)
            if done:
                return
        if self.context.kernel is kernel:
            await kernel.stop()

    async def run(self) -> None:
        context = self.context
        async with context.turn:
            if self.ended:
                return
            self.began = True
            context.running = self
            watchdog = asyncio.create_task(self.watch()) if self.deadline else None
            try:
                await self.run_in_turn(context)
            except Refusal as refusal:
                self.tell("error", name="ContextError", value=refusal.message, traceback=[])
            finally:
                if watchdog is not None:
                    watchdog.cancel()
                context.running = None
                self.end()

    async def run_in_turn(self, context) -> None:
        if context.removed:
            raise Refusal("no_context", "the context was removed")
        if context.kernel is None:
            await context.start()
        kernel = context.kernel
        changed = {name: value for name, value in self.base_env.items() if context.set_env.get(name) != value}
        context.set_env.update(changed)
        changed.update(self.env)
        # What holds for this run only is put back after it.
        after = {name: context.set_env.get(name) for name in self.env if context.set_env.get(name) != self.env[name]}
        try:
            await kernel.execute(self.code, changed, after, self)
        except KernelLost:
            # Whoever relied on what it remembered must hear that it is gone; the next code finds a new kernel.
            self.lose("the kernel died and was started again; what was in its memory is gone")
            if context.kernel is kernel:
                context.kernel = None
                await kernel.stop()
                await context.start()

    async def watch(self) -> None:
        await asyncio.sleep(self.deadline)
        text = f"the code did not end within {self.deadline:g} s and was interrupted"
        self.tell("error", name="DeadlineExceeded", value=text, traceback=[])
        self.end()
        await self.stop_running()
