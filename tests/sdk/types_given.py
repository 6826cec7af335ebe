"""What mypy has to know of the SDK's methods: each is written once, and is of one kind in clients that block and of another in those that await.

Never run; scripts/test-sdk has it checked. An `assert_type` that does not hold is an error there, and so is an argument that should not be taken and is.
"""

from typing_extensions import assert_type

from belljar import AsyncBelljar, AsyncProcess, AsyncSandbox, AsyncStream, Belljar, Change, Event, Execution, FileInfo, Process, Result, Sandbox, SandboxInfo, Stream


def blocking(client: Belljar) -> None:
    with client.create(template="base", cpu=0.5, memory="1GiB") as sandbox:
        assert_type(sandbox, Sandbox)
        assert_type(sandbox.run("true", timeout=5), Result)
        process = sandbox.start(["cat"], stdin=True)
        assert_type(process, Process)
        for event in process:
            assert_type(event, Event)
        assert_type(sandbox.code("python", "1"), Execution)
        assert_type(sandbox.fork(2), list[Sandbox])
        assert_type(sandbox.files.list("/"), list[FileInfo])
        assert_type(sandbox.files.watch("/"), Stream[Change])
        assert_type(sandbox.port(8000).url, str)
        sandbox.run(5)  # type: ignore[arg-type]
        sandbox.run("true", nonsense=1)  # type: ignore[call-arg]
    assert_type(client.list(state="running"), Stream[SandboxInfo])


async def awaiting(client: AsyncBelljar) -> None:
    async with client.create(template="base", cpu=0.5, memory="1GiB") as sandbox:
        assert_type(sandbox, AsyncSandbox)
        assert_type(await sandbox.run("true", timeout=5), Result)
        process = await sandbox.start(["cat"], stdin=True)
        assert_type(process, AsyncProcess)
        async for event in process:
            assert_type(event, Event)
        assert_type(await sandbox.code("python", "1"), Execution)
        assert_type(await sandbox.fork(2), list[AsyncSandbox])
        assert_type(await sandbox.files.list("/"), list[FileInfo])
        async with sandbox.files.watch("/") as changes:
            assert_type(changes, AsyncStream[Change])
    assert_type(await client.create(), AsyncSandbox)
    assert_type(client.list(state="running"), AsyncStream[SandboxInfo])
