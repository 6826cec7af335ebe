"""A kernel that speaks Jupyter's protocol, over sockets in the file system: they outlive a pause of the sandbox, TCP does not."""

import asyncio
import os
import shutil
import signal
import tempfile
import uuid

import zmq
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.connect import write_connection_file

from .execution import Execution, KernelLost
from .languages import CONNECTION_FILE, Language
from .process import Process
from .refusal import Refusal

SLOWEST_START = 120.0
# How long the last output may be behind the answer.
STRAGGLERS = 5.0


class JupyterKernel:
    def __init__(self, language: Language):
        self.language = language
        self.process = None
        self.client = None
        self.directory = None
        self.listener = None

    async def start(self, cwd: str, env: dict) -> None:
        self.directory = tempfile.mkdtemp(prefix="belljar-kernel-")
        file = os.path.join(self.directory, "connection.json")
        key = uuid.uuid4().hex.encode()
        write_connection_file(file, transport="ipc", ip=os.path.join(self.directory, "socket"), key=key, kernel_name=self.language.name)
        argv = [part.replace(CONNECTION_FILE, file) for part in self.language.argv]
        pipe = asyncio.subprocess.PIPE
        # Kernels that know this name end when whoever started them has.
        env = {**env, "JPY_PARENT_PID": str(os.getpid())}
        self.process = await Process.start(argv, cwd, env, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
        self.listener = asyncio.create_task(self.listen())
        self.client = AsyncKernelClient(connection_file=file)
        self.client.load_connection_file()
        self.client.start_channels(stdin=False, hb=False)
        # Output waits here and not in the kernel, which would drop it.
        self.client.iopub_channel.socket.setsockopt(zmq.RCVHWM, 0)
        try:
            ready = await asyncio.wait_for(self.process.or_end(self.greet()), SLOWEST_START)
        except asyncio.TimeoutError:
            raise Refusal("failed", f"the {self.language.name} kernel did not answer within {SLOWEST_START:g} s") from None
        if ready is None:
            raise Refusal("failed", f"the {self.language.name} kernel did not start: {self.process.why()}")

    async def greet(self) -> bool:
        """Until it answers on both channels: what is published before the subscription has arrived is lost."""
        while True:
            asked = self.client.kernel_info()
            while True:
                reply = await self.client.get_shell_msg()
                if reply["parent_header"].get("msg_id") == asked:
                    break
            try:
                await asyncio.wait_for(self.client.get_iopub_msg(), 0.2)
                return True
            except asyncio.TimeoutError:
                continue

    async def listen(self) -> None:
        while words := await self.process.process.stdout.read(4096):
            self.process.remember(words)

    def interrupt(self) -> None:
        self.process.signal(signal.SIGINT)

    async def stop(self) -> None:
        if self.process is not None:
            await self.process.stop()
        if self.client is not None:
            self.client.stop_channels()
        if self.listener is not None:
            self.listener.cancel()
        if self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)

    async def execute(self, code: str, env: dict, after: dict, execution: Execution) -> None:
        if env:
            await self.run(self.language.set_env(env), None)
        await self.run(code, execution)
        if after:
            await self.run(self.language.set_env(after), None)

    async def run(self, code: str, execution) -> None:
        """Runs code to its end. Without an execution nobody hears of it and it does not count."""
        quiet = execution is None
        asked = self.client.execute(code, silent=quiet, store_history=not quiet, allow_stdin=False, stop_on_error=True)
        if await self.process.or_end(self.follow(asked, execution)) is None:
            raise KernelLost()

    async def follow(self, asked: str, execution) -> bool:
        answer = asyncio.create_task(self.answer(asked, execution))
        told = {"error": False}
        output = asyncio.create_task(self.output(asked, execution, told))
        try:
            reply = await answer
            try:
                await asyncio.wait_for(output, STRAGGLERS)
            except asyncio.TimeoutError:
                pass
            if execution is not None and reply.get("status") != "ok" and not told["error"]:
                name = reply.get("ename") or "ExecutionAborted"
                execution.tell("error", name=name, value=reply.get("evalue", ""), traceback=reply.get("traceback", []))
            return True
        finally:
            answer.cancel()
            output.cancel()

    async def answer(self, asked: str, execution) -> dict:
        while True:
            message = await self.client.get_shell_msg()
            if message["parent_header"].get("msg_id") == asked:
                return message["content"]

    async def output(self, asked: str, execution, told: dict) -> None:
        while True:
            message = await self.client.get_iopub_msg()
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return
            if execution is None:
                continue
            if kind == "execute_input":
                execution.tell("began", count=content["execution_count"])
            elif kind == "stream":
                execution.output("stderr" if content["name"] == "stderr" else "stdout", content["text"])
            elif kind in ("display_data", "execute_result"):
                execution.tell("result", main=kind == "execute_result", data=content["data"])
            elif kind == "error" and not told["error"]:
                told["error"] = True
                execution.tell("error", name=content["ename"], value=content["evalue"], traceback=content["traceback"])
