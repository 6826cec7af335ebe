"""Contexts: a language, a directory and the kernel that keeps the state between executions."""

import asyncio
import os
import sys
import uuid
from typing import Optional

from .execution import Execution
from .jupyter import JupyterKernel
from .languages import Language, find, installed
from .lines import LinesKernel
from .refusal import Refusal

MOST_CONTEXTS = 100


class Context:
    def __init__(self, language: Language, cwd: str, env: dict):
        self.id = str(uuid.uuid4())
        self.language = language
        self.cwd = cwd
        self.env = {**os.environ, **env}
        self.kernel = None
        self.turn = asyncio.Lock()
        self.running: Optional[Execution] = None
        self.removed = False

    def told(self) -> dict:
        return {"id": self.id, "language": self.language.name, "cwd": self.cwd}

    async def start(self) -> None:
        kernel = (JupyterKernel if self.language.speaks == "jupyter" else LinesKernel)(self.language)
        # What the kernel's process has from the start needs not be set later.
        self.set_env = dict(self.env) if self.language.inherits else {}
        try:
            await kernel.start(self.cwd, self.env)
        except BaseException:
            await kernel.stop()
            raise
        self.kernel = kernel

    async def restart(self) -> None:
        """State is lost, the context stays. Whatever runs in it ends as lost."""
        old, self.kernel = self.kernel, None
        if self.running is not None:
            self.running.lose("the context was restarted")
        if old is not None:
            await old.stop()
        async with self.turn:
            if self.kernel is None and not self.removed:
                await self.start()

    def interrupt(self) -> None:
        if self.kernel is not None:
            self.kernel.interrupt()

    async def stop(self) -> None:
        self.removed = True
        if self.running is not None:
            self.running.lose("the context was removed")
        kernel, self.kernel = self.kernel, None
        if kernel is not None:
            await kernel.stop()

    def execute(self, code: str, env: dict, base_env: dict, deadline_ms) -> Execution:
        deadline = deadline_ms / 1000 if isinstance(deadline_ms, (int, float)) and deadline_ms > 0 else None
        execution = Execution(self, code, check_env(env), check_env(base_env), deadline)
        execution.task = asyncio.create_task(execution.run())
        return execution


class Contexts:
    def __init__(self, home: str):
        self.home = home if os.path.isdir(home) else "/"
        self.by_id: dict = {}
        self.default: dict = {}
        self.starting = asyncio.Lock()
        self.warmed = asyncio.Event()

    def all(self) -> list:
        return list(self.by_id.values())

    def get(self, id) -> Context:
        context = self.by_id.get(id)
        if context is None:
            raise Refusal("no_context", f"there is no context {id}")
        return context

    async def warm(self, languages: list) -> None:
        """Starts the contexts that every sandbox has. One that does not start must not keep the others from working."""
        try:
            for name in languages:
                try:
                    context = await self.create(name, None, {})
                    self.default.setdefault(context.language.name, context.id)
                except Refusal as refusal:
                    print(f"{name}: {refusal.message}", file=sys.stderr, flush=True)
        finally:
            self.warmed.set()

    async def create(self, language: str, cwd: Optional[str], env: dict) -> Context:
        known = find(str(language))
        if known is None:
            raise Refusal("no_language", f"no kernel for language {language} is installed here; there are: {', '.join(installed())}")
        cwd = cwd or self.home
        if not os.path.isdir(cwd):
            raise Refusal("no_directory", f"{cwd} is not a directory")
        if len(self.by_id) >= MOST_CONTEXTS:
            raise Refusal("too_many", f"there are {MOST_CONTEXTS} contexts already; remove one first")
        context = Context(known, cwd, check_env(env))
        await context.start()
        self.by_id[context.id] = context
        return context

    async def wanted(self, id, language, base_env: dict) -> Context:
        """The context that was named, or the language's own one, started if it is not there yet."""
        if id is not None:
            return self.get(id)
        known = find(str(language or "python"))
        name = known.name if known is not None else str(language)
        async with self.starting:
            context = self.by_id.get(self.default.get(name))
            if context is None:
                context = await self.create(name, None, base_env)
                self.default[name] = context.id
        return context

    async def remove(self, id) -> None:
        context = self.get(id)
        del self.by_id[context.id]
        await context.stop()


def check_env(env: dict) -> dict:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name or not isinstance(value, str) or "\0" in value:
            raise Refusal("invalid", f"env: {name!r} is no variable that can be set")
    return dict(env)
