"""The Model Context Protocol's own Python SDK against `belljar mcp --listen`: addresses that are computers.

Needs the SDK, BELLJAR_URL, BELLJAR_API_KEY and BELLJAR_BIN. Ends with status 1 at the first difference.
"""

import asyncio
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

from agent import best_template, running, server, visitor
from lab.checks import check, checked

KEY = os.environ["BELLJAR_API_KEY"]


class Door:
    """`belljar mcp --listen` with these options."""

    def __init__(self, *options):
        command = [os.environ["BELLJAR_BIN"], "mcp", "--listen", "127.0.0.1:0", *options]
        environment = {name: value for name, value in os.environ.items() if name != "BELLJAR_API_KEY"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        self.url = self.process.stdout.readline().strip()

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextmanager
def door(*options):
    opened = Door(*options)
    try:
        yield opened
        opened.process.terminate()
        check("it ends when told to", opened.process.wait(timeout=30), 0)
    finally:
        opened.kill()


async def line(url, command, key=KEY, **more):
    async with visitor(url, key) as here:
        return (await here.ask("run_command", command=command, **more)).text


def end(name):
    for sandbox in running():
        metadata = server(f"/v1/sandboxes/{sandbox}")["metadata"]
        if name in (metadata.get("mcp"), metadata.get("mcp-fork-of")):
            server(f"/v1/sandboxes/{sandbox}", "DELETE")


async def one_for_all():
    before = running()
    with door() as here, door() as beside:
        lines = [line(f"{one.url}/one", "echo x >> lines") for one in (here, beside) for _ in range(4)]
        check("eight at once, the first ones", await asyncio.gather(*lines), ["[exit code 0]"] * 8)
        check("have made one computer", len(running() - before), 1)
        check("and worked in it", await line(f"{here.url}/one", "wc -l < lines"), "8\n[exit code 0]")
        check("another name is another computer", await line(f"{here.url}/two", "ls"), "[exit code 0]")
        async with visitor(f"{beside.url}/one", KEY) as visiting:
            check("it says that it stays", "the same the next time" in visiting.instructions)
            await visiting.ask("checkpoint", name="good")
            fork = (await visiting.ask("fork_sandbox")).text.split("\n")[0]
        check("a fork is there for the next request", await line(f"{here.url}/one", "wc -l < lines", sandbox=fork), "8\n[exit code 0]")
        check("but not for another computer", "is no sandbox of" in await line(f"{here.url}/two", "true", sandbox=fork))
        await line(f"{here.url}/one", "rm lines")
        async with visitor(f"{here.url}/one", KEY) as visiting:
            told = (await visiting.ask("sandbox_info")).text
            check("from the best template there is", f"template: {best_template()}" in told)
            check("what there is besides", fork in told and "checkpoints: good" in told)
            check("a checkpoint of before", (await visiting.ask("restore_checkpoint", name="good")).is_error, False)
            check("with its files", (await visiting.ask("run_command", command="wc -l < lines")).text, "8\n[exit code 0]")
            check("it is ended", (await visiting.ask("end_sandbox")).is_error, False)
            check("and another takes its name", (await visiting.ask("run_command", command="ls")).text, "[exit code 0]")
    for name in ("one", "two"):
        end(name)
    check("nothing is left", running(), before)


async def killed():
    with door() as here:
        await line(f"{here.url}/k", "echo kept > file")
        here.kill()
        with door() as again:
            check("one that was killed had nothing to lose", await line(f"{again.url}/k", "cat file"), "kept\n[exit code 0]")
        here.process = subprocess.Popen(["true"])
        here.process.wait()
    end("k")


async def hanging_up():
    with door() as here:
        asking = asyncio.create_task(line(f"{here.url}/h", "echo $$ > left; exec sleep 500"))
        await line(f"{here.url}/h", "until [ -s left ]; do sleep 0.05; done")
        asking.cancel()
        await asyncio.wait([asking])
        gone = await line(f"{here.url}/h", "while kill -0 $(cat left) 2>/dev/null; do sleep 0.05; done; echo gone")
        check("a command nobody waits for is ended", gone, "gone\n[exit code 0]")
    end("h")


async def left_alone():
    before = running()
    with door("--idle", "5s") as here:
        started = await line(f"{here.url}/i", "echo one > file; sleep 8; cat file")
        check("it stays while it works", started, "one\n[exit code 0]")
        while running() != before:
            time.sleep(0.1)
        check("then it ends, and the next is a fresh one", (await line(f"{here.url}/i", "ls")), "[exit code 0]")
    end("i")
    with door("--idle", "5s", "--pause-when-idle") as here:
        await line(f"{here.url}/p", "echo kept > file")
        while running() != before:
            time.sleep(0.1)
        check("or it is paused, and goes on", await line(f"{here.url}/p", "cat file"), "kept\n[exit code 0]")
    end("p")


def answer(url, headers):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    request = urllib.request.Request(url, method="POST", data=json.dumps(message).encode(), headers=headers)
    request.add_header("content-type", "application/json")
    request.add_header("accept", "application/json, text/event-stream")
    try:
        with urllib.request.urlopen(request, timeout=30) as got:
            return got.status, got.headers, got.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, refused.read()


async def walls():
    bearer = {"authorization": f"Bearer {KEY}"}
    with door() as here:
        check("with a key there are tools", (lambda got: (got[0], b"run_command" in got[2]))(answer(f"{here.url}/w", bearer)), (200, True))
        status, headers, words = answer(f"{here.url}/w", {})
        check("without one there are none", (status, headers["www-authenticate"], b"bj_" in words), (401, "Bearer", True))
        for name in ("a%20b", "a%2Fb", "x" * 65):
            check(f"{name} is no name", answer(f"{here.url}/{name}", bearer)[0], 400)
        check("nor is a path", answer(f"{here.url}/a/b", bearer)[0], 404)
        wrong = await line(f"{here.url}/w", "true", key="bj_" + "0" * 40)
        check("a wrong key is told of", "key" in wrong and "exit code" not in wrong)
        project = server("/v1/projects", "POST", {"id": f"walls-{os.getpid()}"})["id"]
        other = server("/v1/keys", "POST", {"project": project, "scopes": ["read", "use"], "label": "walls"})["secret"]
        await line(f"{here.url}/w", "echo ours > file")
        check("another project's computer of that name is another", await line(f"{here.url}/w", "ls", key=other), "[exit code 0]")
        async with visitor(f"{here.url}/w", KEY) as visiting:
            ours = (await visiting.ask("sandbox_info")).text.split("\n")[0].removeprefix("sandbox: ")
        check("and ours is not there for it", "is no sandbox of" in await line(f"{here.url}/w", "true", key=other, sandbox=ours))
        async with visitor(f"{here.url}/w", other) as visiting:
            await visiting.ask("end_sandbox")
    open_to_all = subprocess.run(
        [os.environ["BELLJAR_BIN"], "mcp", "--listen", "0.0.0.0:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30
    )
    check("nobody listens to the world without TLS", (open_to_all.returncode, "without TLS" in open_to_all.stderr), (1, True))
    end("w")


async def everything():
    before = running()
    for part in (one_for_all, killed, hanging_up, left_alone, walls):
        await part()
    check("in the end there is nothing", running(), before)


asyncio.run(everything())
print(f"mcp computers: {checked()} checks")
