"""The Model Context Protocol's own Python SDK against `belljar mcp`: code that keeps its state, and pictures.

Needs the SDK, BELLJAR_URL, BELLJAR_API_KEY, BELLJAR_BIN, and a server that has the template code-interpreter-v1. Ends with status 1 at the first difference.
"""

import asyncio

from agent import agent, running
from lab.checks import check, checked


async def code(here):
    first = await here.ask("run_code", code="x = 20\nprint('hello')\nx * 2 + 2")
    check("output and value", first.text, "hello\n[result]\n42")
    check("what was set is there", (await here.ask("run_code", code="x")).text, "[result]\n20")
    failed = (await here.ask("run_code", code="1/0")).text
    check("an error with where it was", failed.startswith("[error]\n") and failed.endswith("ZeroDivisionError: division by zero"))
    drawn = await here.ask("run_code", code="import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    check("a picture", [kind for kind, _ in drawn.pictures], ["image/png"])
    check("in another language", (await here.ask("run_code", code="[1,2].length", language="javascript")).text, "[result]\n2")


async def lives():
    before = running()
    async with agent() as here:
        await code(here)
        check("on the template that has an interpreter", "template: code-interpreter-v1" in (await here.ask("sandbox_info")).text)
    check("in the end there is nothing", running(), before)


asyncio.run(lives())
print(f"mcp code: {checked()} checks")
