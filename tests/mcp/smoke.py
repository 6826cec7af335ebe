"""The Model Context Protocol's own Python SDK against `belljar mcp`: every tool, and what becomes of the sandbox.

Needs the SDK, BELLJAR_URL, BELLJAR_API_KEY and BELLJAR_BIN. Ends with status 1 at the first difference.
"""

import asyncio
import base64
from datetime import datetime, timedelta, timezone

from agent import CANCELS, agent, best_template, running, server
from lab.checks import check, checked

TOOLS = {
    "run_command", "run_code", "read_file", "write_file", "edit_file", "list_directory",
    "checkpoint", "restore_checkpoint", "fork_sandbox", "end_sandbox", "share_port", "sandbox_info",
}


async def commands(here):
    async def run(command, **more):
        answer = await here.ask("run_command", command=command, **more)
        check(f"{command} is answered", answer.is_error, False)
        return answer.text

    check("output and its end", await run("echo hello; echo oops >&2; exit 3"), "hello\n[standard error]\noops\n[exit code 3]")
    check("who it is", await run("whoami; pwd"), "user\n/home/user\n[exit code 0]")
    told = await run("cat; echo $WORD; pwd; whoami", stdin="given\n", env={"WORD": "told"}, cwd="/tmp", user="root")
    check("input, variables, directory, user", told, "given\ntold\n/tmp\nroot\n[exit code 0]")
    check("what does not end", await run("sleep 60", timeout_seconds=1), "[killed after 1 s: it had not ended by then]")
    check("escapes and hidden characters are taken out", await run(r"printf 'a\033[31mb\033]0;title\007c\342\200\256d'"), "abcd\n[exit code 0]")
    flood = await run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
    check("a flood keeps its head and its tail", flood.startswith("xxx") and flood.endswith("last\n[exit code 0]") and "bytes left out" in flood)
    check("and is no flood any more", len(flood) < 80_000)
    both = await asyncio.gather(run("until [ -e /tmp/a ]; do sleep 0.05; done; touch /tmp/b"), run("touch /tmp/a; until [ -e /tmp/b ]; do sleep 0.05; done"))
    check("two at once, each waiting for the other", both, ["[exit code 0]"] * 2)
    heard = []

    async def hear(*told):
        heard.append(told)

    await here.ask("run_command", command="sleep 6", progress=hear)
    check("a long one is told to go on", bool(heard))
    if not CANCELS:
        return
    waiting = asyncio.create_task(here.ask("run_command", command="echo $$ > /tmp/left; exec sleep 500"))
    await run("until [ -s /tmp/left ]; do sleep 0.05; done")
    waiting.cancel()
    await asyncio.wait([waiting])
    check("what nobody waits for is ended", await run("while kill -0 $(cat /tmp/left) 2>/dev/null; do sleep 0.05; done"), "[exit code 0]")


async def files(here):
    async def text(tool, **arguments):
        answer = await here.ask(tool, **arguments)
        check(f"{tool} {arguments} is done", (answer.is_error, answer.text if answer.is_error else ""), (False, ""))
        return answer.text

    async def refused(word, tool, **arguments):
        answer = await here.ask(tool, **arguments)
        check(f"{tool} {arguments} is refused", answer.is_error)
        check(f"{tool} {arguments} says why", (word in answer.text, answer.text), (True, answer.text))

    await text("write_file", path="/home/user/new/poem.txt", content="one\ntwo\nthree\nfour\n")
    check("all of it", await text("read_file", path="/home/user/new/poem.txt"), "one\ntwo\nthree\nfour\n")
    part = await text("read_file", path="/home/user/new/poem.txt", first_line=2, lines=2)
    check("a part of it", part, "two\nthree\n[there is more: go on with first_line 4]")
    await text("edit_file", path="/home/user/new/poem.txt", old_text="two\nthree", new_text="2\n3")
    check("a passage is another", await text("read_file", path="/home/user/new/poem.txt"), "one\n2\n3\nfour\n")
    await refused("0 times", "edit_file", path="/home/user/new/poem.txt", old_text="five", new_text="5")
    await refused("has the text 2 times", "edit_file", path="/home/user/new/poem.txt", old_text="o", new_text="0")
    await refused("No such file", "read_file", path="/home/user/nothing")
    check("from the home", await text("read_file", path="new/poem.txt", lines=1), "one\n[there is more: go on with first_line 2]")
    check("a directory", await text("list_directory", path="/home/user/new"), "/home/user/new/poem.txt  13 bytes")
    check("an empty one", await text("list_directory", path="/mnt"), "[/mnt is empty]")
    await here.ask("run_command", command=r"printf 'ab\342\200\256c' > /tmp/hidden; printf 'a\0b' > /tmp/binary")
    check("what is hidden is shown", await text("read_file", path="/tmp/hidden"), "ab\\u{202e}c")
    check("no text", "is not text, 3 bytes" in await text("read_file", path="/tmp/binary"))
    picture = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")
    written = base64.b64encode(picture).decode()
    await here.ask("run_command", command="base64 -d > /tmp/dot.png", stdin=written)
    shown = await here.ask("read_file", path="/tmp/dot.png")
    check("a picture is shown as one", shown.pictures, [("image/png", written)])


async def states(here):
    async def line(command, **more):
        return (await here.ask("run_command", command=command, **more)).text

    await line("echo before > state; nohup sh -c 'while :; do sleep 1; done' > /dev/null 2>&1 & echo $! > pid")
    check("a checkpoint", (await here.ask("checkpoint", name="good")).text.startswith("[good: files"))
    await line("echo after > state; rm -rf new; sudo rm -f /etc/hostname")
    check("is gone back to", (await here.ask("restore_checkpoint", name="good")).is_error, False)
    check("with its files", await line("cat state; ls new"), "before\npoem.txt\n[exit code 0]")
    wrong = await here.ask("restore_checkpoint", name="bad")
    check("there is no other", (wrong.is_error, wrong.text), (True, "there is no checkpoint bad; there are: good"))
    fork = (await here.ask("fork_sandbox")).text.split("\n")[0]
    check("a fork has the same", await line("cat state", sandbox=fork), "before\n[exit code 0]")
    await line("echo fork > state", sandbox=fork)
    check("and keeps its own to itself", await line("cat state"), "before\n[exit code 0]")
    told = (await here.ask("sandbox_info")).text
    check("both are told of", fork in told and "checkpoints: good" in told)
    check("a fork is ended", (await here.ask("end_sandbox", sandbox=fork)).text, f"[sandbox {fork} has ended]")
    gone = await here.ask("run_command", command="true", sandbox=fork)
    check("and is no more", gone.is_error and "is no sandbox of this connection" in gone.text)
    return told.split("\n")[0].removeprefix("sandbox: ")


async def lives():
    before = running()
    async with agent("--template", "base") as here:
        check("nothing is made before it is needed", running(), before)
        check("its tools", set(await here.tools()), TOOLS)
        check("it says what comes back", "never an instruction" in here.instructions)
        for name, schema in (await here.tools()).items():
            check(f"{name} says what it takes", schema["type"], "object")
        wrong = await here.ask("run_command", cmd="id")
        check("a wrong argument is named", wrong.is_error and "unknown field `cmd`" in wrong.text)
        check("and nothing was made for it", running(), before)
        await commands(here)
        await files(here)
        own = await states(here)
        check("one sandbox for all", running() - before, {own})
        ends = datetime.fromisoformat(server(f"/v1/sandboxes/{own}")["expires_at"].replace("Z", "+00:00"))
        check("which a killed agent leaves for two minutes", ends - datetime.now(timezone.utc) <= timedelta(seconds=121))
        other = server("/v1/sandboxes", "POST", {"template": "base"})["id"]
        for tool, arguments in [("run_command", {"command": "id"}), ("end_sandbox", {}), ("sandbox_info", {}), ("fork_sandbox", {})]:
            answer = await here.ask(tool, sandbox=other, **arguments)
            check(f"{tool} touches no other's", answer.is_error and "is no sandbox of this connection" in answer.text)
        without = await here.ask("run_code", code="1")
        check("no interpreter, and what to do", without.is_error and "has no code interpreter" in without.text and "run_command" in without.text)
        server(f"/v1/sandboxes/{own}", "DELETE")
        gone = await here.ask("run_command", command="true")
        check("one that ended behind its back is told of", gone.is_error and f"the sandbox {own} is gone" in gone.text)
        fresh = await here.ask("run_command", command="ls new")
        check("and the next call has a fresh one", fresh.text.endswith("[exit code 2]"))
        version = here.version
    check("all that was made has ended", running(), before | {other})
    snapshots = server("/v1/snapshots")["snapshots"]
    check("and no checkpoint is left", snapshots, [])
    async with agent("--sandbox", other) as here:
        check("in one that was given", (await here.ask("run_command", command="echo here")).text, "here\n[exit code 0]")
        refused = await here.ask("end_sandbox")
        check("which is not ended", refused.is_error and "was given" in refused.text)
    check("nor left behind", running(), before | {other})
    server(f"/v1/sandboxes/{other}", "DELETE")
    async with agent() as here:
        check("from the best template there is", f"template: {best_template()}" in (await here.ask("sandbox_info")).text)
    async with agent("--template", "no-such-template") as here:
        answer = await here.ask("run_command", command="true")
        check("what cannot be made is told to the model", answer.is_error and "no-such-template" in answer.text)
    async with agent(BELLJAR_API_KEY="bj_0000000000000000000000000000000000000000") as here:
        answer = await here.ask("run_command", command="true")
        check("a wrong key too", answer.is_error and "key" in answer.text)
    check("in the end there is nothing", running(), before)
    return version


version = asyncio.run(lives())
print(f"mcp smoke: {checked()} checks, protocol {version}")
