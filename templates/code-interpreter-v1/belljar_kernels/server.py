"""One request a connection: a line of JSON in, lines of JSON out.

    {"do": "contexts"}                                            -> {"contexts": [{"id", "language", "cwd"}, ...]}
    {"do": "create", "language", "cwd", "env"}                    -> {"context": {...}}
    {"do": "restart" | "interrupt" | "remove", "context"}         -> {"done": true}
    {"do": "execute", "context" | "language", "code", "env", "base_env", "deadline_ms"}
        -> {"accepted": true} as soon as it waits for its turn, then {"event": "began", "count"}, "stdout" {"text", "at"}, "stderr", "result" {"main", "data"}, "error" {"name", "value", "traceback"},
           "lost" {"message"}, and always at last {"event": "end"}
    anything refused                                              -> {"refused": {"code", "message"}}

An execution whose client hangs up is interrupted. `GET /health` is answered as HTTP, so that a ready check can be any HTTP client.
"""

import asyncio
import json
import math

from .contexts import Contexts
from .refusal import Refusal

HEALTH = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\nConnection: close\r\n\r\n\"OK\""
NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Server:
    LONGEST_REQUEST = 16 << 20
    LONGEST_ANSWER = 16_000_000

    def __init__(self, contexts: Contexts):
        self.contexts = contexts

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            if line.startswith((b"GET ", b"HEAD ")):
                await self.contexts.warmed.wait()
                writer.write(HEALTH if line.split(b" ")[1] == b"/health" else NOTHING)
                await writer.drain()
            elif line:
                await self.answer(line, reader, writer)
        except (ConnectionError, ValueError, asyncio.IncompleteReadError):
            # The client has gone, or sent a line beyond all measure.
            pass
        finally:
            writer.close()

    async def answer(self, line: bytes, reader, writer) -> None:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise Refusal("invalid", "a request is an object")
            does = getattr(self, "do_" + str(request.get("do")), None)
            if does is None:
                raise Refusal("invalid", "do: contexts, create, restart, interrupt, remove or execute")
            await does(request, reader, writer)
        except Refusal as refusal:
            await self.send(writer, {"refused": {"code": refusal.code, "message": refusal.message}})
        except (json.JSONDecodeError, UnicodeDecodeError, TypeError, KeyError, AttributeError) as error:
            await self.send(writer, {"refused": {"code": "invalid", "message": f"the request cannot be understood: {error}"}})

    async def send(self, writer, message: dict) -> None:
        line = to_line(message)
        if len(line) > self.LONGEST_ANSWER:
            text = f"a result of {len(line)} bytes was too long to hand out (at most {self.LONGEST_ANSWER}); write it to a file instead\n"
            line = to_line({"event": "stderr", "text": text, "at": message.get("at", 0)})
        writer.write(line)
        await writer.drain()

    async def do_contexts(self, _request, _reader, writer) -> None:
        await self.contexts.warmed.wait()
        await self.send(writer, {"contexts": [context.told() for context in self.contexts.all()]})

    async def do_create(self, request, _reader, writer) -> None:
        await self.contexts.warmed.wait()
        context = await self.contexts.create(request.get("language") or "python", request.get("cwd"), request.get("env") or {})
        await self.send(writer, {"context": context.told()})

    async def do_restart(self, request, _reader, writer) -> None:
        await self.contexts.get(request.get("context")).restart()
        await self.send(writer, {"done": True})

    async def do_interrupt(self, request, _reader, writer) -> None:
        self.contexts.get(request.get("context")).interrupt()
        await self.send(writer, {"done": True})

    async def do_remove(self, request, _reader, writer) -> None:
        await self.contexts.remove(request.get("context"))
        await self.send(writer, {"done": True})

    async def do_execute(self, request, reader, writer) -> None:
        await self.contexts.warmed.wait()
        base_env = request.get("base_env") or {}
        context = await self.contexts.wanted(request.get("context"), request.get("language"), base_env)
        execution = context.execute(str(request.get("code", "")), request.get("env") or {}, base_env, request.get("deadline_ms"))
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await self.send(writer, {"accepted": True})
            while True:
                event = asyncio.ensure_future(execution.events.get())
                await asyncio.wait({event, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not event.done():
                    event.cancel()
                    return
                await self.send(writer, event.result())
                if event.result()["event"] == "end":
                    return
        finally:
            gone.cancel()
            execution.abandon()


def to_line(message: dict) -> bytes:
    try:
        text = json.dumps(message, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):
        text = json.dumps(cleaned(message), ensure_ascii=False, allow_nan=False)
    # Half of a surrogate pair is a Python string but no text.
    return text.encode("utf-8", "replace") + b"\n"


def cleaned(value):
    """The same without what JSON has no word for."""
    if isinstance(value, dict):
        return {str(key): cleaned(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
