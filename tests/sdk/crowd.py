"""Twenty sandboxes at once through the Python SDK's one loop, and as many threads on one client that blocks."""

import asyncio
import concurrent.futures

from belljar import AsyncBelljar, Belljar, Output
from lab.checks import check, checked

MANY = 20


async def one(client, number):
    async with client.create(memory="128MiB", metadata={"crowd": str(number)}) as sandbox:
        await sandbox.files.write("n", str(number))
        process = await sandbox.start("cat n; cat", stdin=True)
        await process.write(f" of {MANY}")
        await process.close_stdin()
        text = "".join([event.text async for event in process if isinstance(event, Output)])
        results = await asyncio.gather(*(sandbox.run(["echo", f"{number}.{turn}"]) for turn in range(3)))
        return sandbox.id, text, [result.stdout for result in results]


async def awaiting():
    async with AsyncBelljar() as client:
        done = await asyncio.gather(*(one(client, number) for number in range(MANY)))
        check("as many sandboxes", len({id for id, _, _ in done}), MANY)
        check("each its own", [text for _, text, _ in done], [f"{number} of {MANY}" for number in range(MANY)])
        check("and its own commands", [lines for _, _, lines in done], [[f"{number}.{turn}\n" for turn in range(3)] for number in range(MANY)])
        check("nothing is left", [each.id async for each in client.list(state="running")], [])


def threads():
    def work(number):
        with client.create(memory="128MiB") as sandbox:
            return sandbox.run(["echo", str(number)]).stdout

    with Belljar() as client, concurrent.futures.ThreadPoolExecutor(MANY) as pool:
        check("in threads", list(pool.map(work, range(MANY))), [f"{number}\n" for number in range(MANY)])


asyncio.run(awaiting())
threads()
print(f"belljar (Python), a crowd: {checked()} checks passed")
