"""Code that keeps its state, through the Python SDK: contexts, rich results, errors, streams."""

import asyncio

import belljar
from belljar import AsyncBelljar, Belljar
from lab.checks import check, checked, raises

PNG = b"\x89PNG\r\n\x1a\n"
PLOT = "import matplotlib.pyplot as plt; plt.plot([1, 2, 3]); plt.title('three'); plt.show()"


def runs(sandbox):
    check("a value", sandbox.code("python", "x = 20; x * 2 + 2").text, "42")
    check("remembered", sandbox.code("python", "print(x); [x, 'y']").results[0].json, [20, "y"])
    check("written", sandbox.code("python", "import sys; print(x); print('oops', file=sys.stderr)").stdout, "20\n")
    check("with variables", sandbox.code("python", "import os; os.environ['A']", env={"A": "b"}).text, "'b'")
    picture = sandbox.code("python", PLOT)
    check("a picture", (picture.ok, [each[:8] for each in picture.pictures]), (True, [PNG]))
    check("and its numbers", [each.chart["type"] for each in picture.results if each.chart], ["line"])
    table = sandbox.code("python", "import pandas; pandas.DataFrame({'a': [1, 2]})").main
    check("a table", (table.table, "<table" in table.html), ({"a": [1, 2]}, True))
    failed = sandbox.code("python", "1 / 0")
    check("a failure", (failed.ok, failed.error.name), (False, "ZeroDivisionError"))
    check("which is an error where asked", raises("", belljar.CodeFailed, lambda: sandbox.code("python", "1 / 0", check=True)).execution.error.name, "ZeroDivisionError")
    check("the context goes on", sandbox.code("python", "x").text, "20")
    check("its time is over", sandbox.code("python", "import time; time.sleep(60)", timeout=1).error.name, "DeadlineExceeded")
    check("another language", sandbox.code("javascript", "1 + 1").text, "2")
    check("that is not there", raises("", belljar.Unsupported, lambda: sandbox.code("cobol", "")).code, "no_language")
    hostile = sandbox.code("python", r"print('\x1b]0;owned\x07'); '\u202eevil'")
    check("is not shown as it is", (hostile.stdout[0], repr(hostile).isprintable()), ("\x1b", True))


def contexts(sandbox):
    one, other = sandbox.code.context("python"), sandbox.code.context("python", cwd="/tmp")
    one.run("x = 'one'")
    check("contexts do not see each other", (one.run("x").text, other.run("x").error.name, other.run("import os; os.getcwd()").text), ("'one'", "NameError", "'/tmp'"))
    check("they are listed", {one.id, other.id} <= {each.id for each in sandbox.code.contexts()})
    one.restart()
    check("one that was restarted remembers nothing", one.run("x").error.name, "NameError")
    events = list(other.stream("for n in range(2): print(n)\nn"))
    check("as it comes", "".join(event.text for event in events if event.type == "stdout"), "0\n1\n")
    check("with its value", [event.result.text for event in events if event.type == "result"], ["1"])
    with sandbox.code.stream("python", "import time\nprint('begun', flush=True)\ntime.sleep(600)") as endless:
        check("one that is left", next(event.text for event in endless if event.type == "stdout"), "begun\n")
    check("is interrupted", sandbox.code("python", "'free again'").text, "'free again'")
    one.remove()
    other.remove()


async def awaiting():
    async with AsyncBelljar() as client, client.create(template="code-interpreter-v1") as sandbox:
        check("awaited", (await sandbox.code("python", "y = 6 * 7; y")).text, "42")
        context = await sandbox.code.context()
        check("in its own context", (await context.run("y")).error.name, "NameError")
        check("as it comes", [event.text async for event in context.stream("print('z')") if event.type == "stdout"], ["z\n"])


def main():
    with Belljar() as client:
        with client.create() as bare:
            check("a template without kernels", raises("", belljar.Unsupported, lambda: bare.code("python", "1")).code, "no_interpreter")
        with client.create(template="code-interpreter-v1") as sandbox:
            runs(sandbox)
            contexts(sandbox)
    asyncio.run(awaiting())
    print(f"belljar (Python), code: {checked()} checks passed")


main()
