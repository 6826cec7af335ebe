"""Daytona's unmodified asynchronous Python SDK against a Belljar server: another HTTP client and other WebSockets than the plain one's.

Needs only the SDK and its environment variables (DAYTONA_API_KEY, DAYTONA_API_URL). Ends with status 1 at the first difference.
"""

import asyncio
import uuid
from importlib.metadata import version

from daytona import AsyncDaytona, CreateSandboxFromSnapshotParams, DaytonaNotFoundError, SessionExecuteRequest

from lab.checks import check, checked


async def use(daytona):
    sandbox = await daytona.create(CreateSandboxFromSnapshotParams(labels={"mark": uuid.uuid4().hex}))
    check("several at once", [one.result for one in await asyncio.gather(*(sandbox.process.exec(f"echo {n}") for n in range(8)))], [f"{n}\n" for n in range(8)])
    await sandbox.fs.upload_file(bytes(3_000_000), "zeros")
    check("a file", len(await sandbox.fs.download_file("zeros")), 3_000_000)
    await sandbox.process.create_session("s")
    slow = await sandbox.process.execute_session_command("s", SessionExecuteRequest(command="echo a; sleep 0.2; echo b >&2", run_async=True))
    heard = {"out": "", "err": ""}
    add = lambda kind: lambda text: heard.update({kind: heard[kind] + text})
    await sandbox.process.get_session_command_logs_async("s", slow.cmd_id, add("out"), add("err"))
    check("a log as it comes", heard, {"out": "a\n", "err": "b\n"})
    shown = bytearray()

    async def show(data):
        shown.extend(data)

    terminal = await sandbox.process.create_pty_session("t", on_data=show, envs={"A": "x"})
    await terminal.send_input("echo $A-seen; exit 3\n")
    check("a terminal", ((await terminal.wait()).exit_code, b"x-seen" in shown), (3, True))
    await sandbox.stop()
    check("it is stopped", (await daytona.get(sandbox.id)).state.value, "stopped")
    await sandbox.start()
    await sandbox.delete(wait=True)
    try:
        await daytona.get(sandbox.id)
        check("it is gone", "found")
    except DaytonaNotFoundError:
        check("it is gone", True)


async def main():
    async with AsyncDaytona() as daytona:
        await use(daytona)
    print(f"daytona {version('daytona')} (Python, asynchronous): {checked()} checks")


if __name__ == "__main__":
    asyncio.run(main())
