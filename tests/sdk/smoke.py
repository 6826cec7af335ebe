"""The Python SDK against a live server: every basic feature once, blocking, and a turn of it awaiting.

Needs only the SDK and its environment variables. Ends with status 1 at the first difference.
"""

import asyncio
import io
import tempfile
import uuid
from pathlib import Path

import belljar
from belljar import AsyncBelljar, Belljar, Exit, Gap, Output
from lab.checks import check, checked, raises


def sandboxes(client):
    mark = uuid.uuid4().hex
    me = client.whoami()
    check("who asks", (me.project, "admin" in me.scopes), ("default", True))
    check("the server is ready", (client.is_ready(), client.server().default_template), (True, "base"))
    with client.create(metadata={"mark": mark, "odd": "a b&c=%"}, env={"GREETING": "hello"}, cpu=0.5, memory="512MiB", pids=200) as sandbox:
        check("it runs", (sandbox.info.is_running, sandbox.info.metadata["odd"]), (True, "a b&c=%"))
        check("its limits", (sandbox.info.limits.cpu_millis, sandbox.info.limits.memory_bytes, sandbox.info.limits.pids), (500, 512 << 20, 200))
        check("its environment", sandbox.run("echo $GREETING").stdout, "hello\n")
        check("it is listed by its metadata", [each.id for each in client.list(metadata={"mark": mark, "odd": "a b&c=%"}, state="running")], [sandbox.id])
        until = sandbox.info.expires_at
        check("a longer life", sandbox.lease("1h").expires_at > until)
        check("a lease that does not shorten", sandbox.lease(5, at_least=True).expires_at > until)
        check("other metadata", sandbox.change(metadata={"mark": mark, "n": "2"}, idle_timeout="2h").metadata["n"], "2")
        check("no idle time-out", sandbox.change(idle_timeout=None).idle_timeout_seconds, None)
        with client.open(sandbox.id) as again:
            check("it is found again", again.run(["echo", "a  b"]).stdout, "a  b\n")
        check("and goes on when that is left", sandbox.refresh().is_running)
        check("no terminal was recorded", sandbox.recordings(), [])
        check("what it used", (sandbox.usage().cpu_micros > 0, sandbox.metrics().processes > 0), (True, True))
    check("left, it has ended", (sandbox.info.has_ended, sandbox.info.end.cause), (True, "requested"))
    raises("what has ended runs nothing", belljar.Ended, lambda: sandbox.run("true"))
    pages = [each.id for each in client.list(metadata={"mark": mark})]
    check("and is remembered", pages, [sandbox.id])

    kept = client.create(keep=True, lease="5m", idempotency_key=f"key-{mark}")
    again = client.create(keep=True, lease="5m", idempotency_key=f"key-{mark}")
    check("the same key is the same sandbox", again.id, kept.id)
    with kept:
        pass
    check("one that is to stay stays", kept.refresh().is_running)
    kept.kill()
    check("until it is killed", kept.kill().has_ended)
    answer = client.request("GET", "/v1/sandboxes", query={"metadata": [f"mark:{mark}"]})
    check("anything can be asked", len(answer.json()["sandboxes"]), 1)
    raises("of this server and no other", belljar.Misuse, lambda: client.request("GET", "http://127.0.0.1:9/v1/whoami"))


def commands(sandbox):
    result = sandbox.run("echo out; echo oops >&2; exit 3")
    check("a command", (result.stdout, result.stderr, result.exit_code, result.ok, result.truncated), ("out\n", "oops\n", 3, False, False))
    check("words, not a line", sandbox.run(["printf", "%s|", "a b", "$HOME"]).stdout, "a b|$HOME|")
    check("where, who and with what", sandbox.run("echo $PWD $(whoami) $A", cwd="/tmp", user="root", env={"A": "x"}).stdout, "/tmp root x\n")
    check("a signal", (sandbox.run("kill -9 $$").signal, sandbox.run("kill -9 $$").exit_code), (9, None))
    check("its time is over", sandbox.run("echo begun; sleep 60", timeout=0.5).timed_out)
    failed = raises("a bad end", belljar.CommandFailed, lambda: sandbox.run("echo 'no such thing' >&2; exit 2", check=True))
    check("says what it said", ("no such thing" in str(failed), failed.result.exit_code), (True, 2))
    pieces = []
    sandbox.run("echo a; sleep 0.2; echo b >&2", on_output=pieces.append)
    check("as it comes", [(piece.stream, piece.text) for piece in pieces], [("stdout", "a\n"), ("stderr", "b\n")])
    raises("a listener that fails", ZeroDivisionError, lambda: sandbox.run("echo $$; sleep 1000", on_output=lambda piece: 1 / 0))
    check("ends its command", [each.info.argv for each in sandbox.processes() if each.wait("20s") is None], [])
    check("input", sandbox.run("tr a-z A-Z", input="hällo").stdout, "HäLLO")
    big = bytes(range(256)) * 20000
    check("5 MB in and out", sandbox.run("cat", input=big).stdout_bytes == big)
    check("input that nobody wants", sandbox.run("exec 0<&-; echo done", input=big).stdout, "done\n")
    much = sandbox.run("head -c 3000000 /dev/zero | tr '\\0' x; printf END", max_output=1000)
    check("much output", (len(much.stdout), much.stdout[-3:], much.stdout_omitted.start, much.stdout_omitted.end), (1000, "END", 500, 2999503))
    cleaned = sandbox.run("printf '\\033[31mred\\033[0m secret-value'", escapes="strip", mask=["secret-value"])
    check("cleaned output", (cleaned.stdout, cleaned.stdout_cleaning.escapes > 0, cleaned.stdout_cleaning.masked), ("red ***", True, 1))
    raises("a program that is not there", belljar.NotFound, lambda: sandbox.run(["no-such-program"]))
    raises("a user who is not there", belljar.Refused, lambda: sandbox.run("true", user="nobody-at-all"))


def processes(sandbox):
    cat = sandbox.start(["cat"], stdin=True, tag="echo")
    cat.write("one\n")
    cat.write(b"two\n")
    check("it runs", (cat.refresh().state, cat.info.tag, cat.info.stdin_offset), ("running", "echo", 8))
    check("it has not ended", cat.wait(timeout=0.1), None)
    cat.close_stdin()
    events = list(cat)
    check("what it wrote", b"".join(event.data for event in events if isinstance(event, Output)), b"one\ntwo\n")
    check("how it ended", (events[-1], cat.wait()), (Exit(0), Exit(0)))
    check("read on, there is nothing more", [event for event in cat if isinstance(event, Output)], [])
    found = sandbox.process(cat.id)
    check("found again, all of it", b"".join(event.data for event in found.events() if isinstance(event, Output)), b"one\ntwo\n")
    check("or from an offset", b"".join(event.data for event in found.events(stdout=4) if isinstance(event, Output)), b"two\n")
    check("it is listed", cat.id in [each.id for each in sandbox.processes()])

    counting = sandbox.start("for i in 1 2 3; do echo $i; read wait; done", stdin=True)
    seen = []
    for event in counting:
        if isinstance(event, Exit):
            break
        seen.append(event.text)
        counting.write("go\n")
    check("a conversation", "".join(seen), "1\n2\n3\n")

    lossy = sandbox.start("head -c 100000 /dev/zero | tr '\\0' x", keep=4096)
    lossy.wait()
    gaps = [event for event in lossy if isinstance(event, Gap)]
    check("what is no longer kept is said", [(gap.start, gap.end) for gap in gaps], [(0, 100000 - 4096)])
    slow = sandbox.start("head -c 100000 /dev/zero | tr '\\0' x", keep=4096, overflow="slow")
    check("one that waits for its reader loses nothing", len(slow.communicate().stdout), 100000)

    sleeper = sandbox.start("sleep 100")
    sleeper.signal("TERM")
    check("a signal by name", sleeper.wait().signal, 15)
    sleeper = sandbox.start("trap 'exit 7' INT; echo ready; while :; do sleep 0.1; done")
    check("ready", next(iter(sleeper)).text, "ready\n")
    sleeper.signal(2)
    check("a signal by number", sleeper.wait().exit_code, 7)

    terminal = sandbox.start("bash --norc", pty=(80, 24))
    terminal.resize(100, 30)
    terminal.write("stty size; exit\n")
    check("a terminal of another size", "30 100" in terminal.communicate().stdout)


def files(sandbox):
    fs = sandbox.files
    info = fs.write("notes/a.txt", "hällo", parents=True, mode=0o640)
    check("what was written", (info.path, info.size, info.mode, info.owner, info.is_file), ("/home/user/notes/a.txt", 6, "0640", "user", True))
    check("is read", (fs.read("notes/a.txt"), fs.read_text("notes/a.txt")), ("hällo".encode(), "hällo"))
    check("a piece of it", (fs.read("notes/a.txt", start=1, length=2), fs.read("notes/a.txt", start=3), fs.read("notes/a.txt", start=99)), ("ä".encode(), b"llo", b""))
    fs.write("notes/a.txt", b"H", offset=0)
    check("written into", fs.read_text("notes/a.txt"), "Hällo")
    raises("one that is there is left alone", belljar.Refused, lambda: fs.write("notes/a.txt", "x", exclusive=True))
    check("as root", fs.write("/root/b", "b", user="root").owner, "root")
    check("made", (fs.mkdir("d/e"), fs.mkdir("d/e")), (True, False))
    fs.write("d/e/f", b"")
    check("listed", [(each.path, each.kind) for each in fs.list("d", depth=2)], [("/home/user/d/e", "directory"), ("/home/user/d/e/f", "file")])
    check("moved", fs.move("d/e/f", "d/g").name, "g")
    check("changed", fs.change("d/g", mode="0600").mode, "0600")
    fs.set_attribute("d/g", "user.kind", b"\x00report")
    check("an attribute", fs.get_attribute("d/g", "user.kind"), b"\x00report")
    fs.remove_attribute("d/g", "user.kind")
    raises("that was removed", belljar.NotFound, lambda: fs.get_attribute("d/g", "user.kind"))
    check("there", (fs.exists("d/g"), fs.exists("d/e/f"), fs.stat("d").is_directory), (True, False, True))
    fs.write(b"d/\xff\xfe", "odd")
    check("a name that is no text", (fs.read(b"d/\xff\xfe"), b"/home/user/d/\xff\xfe" in [each.path_bytes for each in fs.list("d")]), (b"odd", True))
    hits = list(fs.search("notes", content="llo"))
    check("found", [(hit.path, hit.line, hit.text) for hit in hits], [("/home/user/notes/a.txt", 1, "Hällo")])
    check("found by name", [hit.path for hit in fs.search("notes", name="*.txt")], ["/home/user/notes/a.txt"])
    with fs.watch("d", recursive=True) as changes:
        fs.write("d/new", "1")
        first = next(changes)
    check("noticed", (first.kind, first.name), ("created", "new"))
    fs.remove("d")
    raises("what was removed", belljar.NotFound, lambda: fs.read("d/g"))
    with tempfile.TemporaryDirectory() as place:
        here, back = Path(place) / "here", Path(place) / "back"
        here.write_bytes(bytes(range(256)) * 5000)
        check("up", fs.upload(here, "up").size, 1280000)
        check("down", (fs.download("up", back), back.read_bytes() == here.read_bytes()), (1280000, True))
        check("up and down, open", (fs.upload(io.BytesIO(b"open"), "open").size, fs.download("open", out := io.BytesIO()), out.getvalue()), (4, 4, b"open"))
        raises("what is not there", belljar.NotFound, lambda: fs.download("no-such-file", Path(place) / "none"))
        check("leaves nothing here", sorted(each.name for each in Path(place).iterdir()), ["back", "here"])


def hostile(sandbox):
    nasty = "\x1b]0;owned\x07\u202eevil"
    result = sandbox.run(["printf", "%s", nasty])
    check("output is as it was", result.stdout, nasty)
    check("and is not shown so", repr(result).isprintable())
    sandbox.files.write(f"dir/{nasty}", "x", parents=True)
    check("nor are names", repr(sandbox.files.list("dir")).isprintable())
    failed = raises("an error with its words", belljar.CommandFailed, lambda: sandbox.run(["sh", "-c", f"printf %s '{nasty}' >&2; exit 1"], check=True))
    check("is not shown so either", (str(failed).isprintable(), repr(failed).isprintable()), (True, True))
    process = sandbox.start(["printf", "%s", nasty])
    check("nor are events", [repr(event).isprintable() for event in process][0])
    check("nor is the process", repr(process).isprintable())


def ports(sandbox):
    sandbox.files.write("www/index.html", "<p>it works", parents=True)
    server = sandbox.start(["python3", "-m", "http.server", "8000"], cwd="/home/user/www")
    port = sandbox.port(8000, wait="30s")
    check("it listens", 8000 in [each.port for each in sandbox.ports()])
    check("its page", (port.request("GET", "/index.html").body, port.request(path="/no-such-page").status), (b"<p>it works", 404))
    check("its address", (port.url.endswith(f"/v1/sandboxes/{sandbox.id}/ports/8000/proxy/"), len(port.token) > 20), (True, True))
    check("its token is not shown", port.token not in repr(port) + repr(port.permission))
    raises("no path leads out", belljar.Misuse, lambda: port.request("GET", "/%2e%2e/../keys"))
    server.kill()
    server.wait()
    raises("nobody listens", belljar.PortClosed, lambda: port.request("GET", "/"))


def refusals(client):
    wrong = raises("a wrong field", belljar.Invalid, lambda: client.create(pids=3))
    check("is named", (wrong.field, wrong.code, wrong.status, bool(wrong.request_id)), ("limits.pids", "invalid", 400, True))
    check("here too", raises("a wrong size", belljar.Misuse, lambda: client.create(memory="much")).field, "memory")
    check("no template", raises("", belljar.NotFound, lambda: client.create(template="no-such-template")).code, "template_not_found")
    raises("no such sandbox", belljar.NotFound, lambda: client.open("s" * 20))
    raises("no path out of an id", belljar.NotFound, lambda: client.open("../keys"))
    with Belljar(api_key="bj_" + "x" * 40) as stranger:
        refused = raises("another key", belljar.Unauthorized, stranger.whoami)
        check("says what to do", 'eval "$(belljar env)"' in str(refused))
    with Belljar(url="http://127.0.0.1:9") as nobody:
        check("nothing was done", raises("nobody there", belljar.Unreachable, nobody.whoami).maybe_done, False)


def administration(client):
    mark = uuid.uuid4().hex[:8]
    project = client.projects.add(f"sdk-{mark}", sandboxes=2)
    check("a project", (project.quota.sandboxes, project.id in [each.id for each in client.projects.list()]), (2, True))
    check("its quota", client.projects.change(project.id, sandboxes=1).quota.sandboxes, 1)
    made = client.keys.add(project.id, label="sdk", expires_in="1h")
    check("a key", (made.secret.startswith("bj_"), made.secret in repr(made)), (True, False))
    with Belljar(api_key=made.secret) as other, other.create() as sandbox:
        check("acts for its project", other.whoami().project, project.id)
        raises("and makes no other", belljar.Forbidden, lambda: other.projects.add("other"))
        check("up to its quota", raises("", belljar.QuotaExceeded, other.create).code, "quota_exceeded")
        budget = client.budgets.set(f"sandbox:{sandbox.id}", "executions", soft=50, hard=100)
        check("a budget", (budget.hard, [each.subject for each in client.budgets.list() if each.subject.endswith(sandbox.id)]), (100, [f"sandbox:{sandbox.id}"]))
        client.budgets.remove(f"sandbox:{sandbox.id}", "executions")
        sandbox.run("true")
        report = other.usage()
        check("what was used", (report.total.executions, [each.sandbox for each in report.sandboxes]), (1, [sandbox.id]))
        check("as a table", other.usage_csv().count(sandbox.id), 1)
        artifact = sandbox.keep_file("/etc/hostname", name="name.txt", expires_in="1h")
        kept = other.artifacts.read(artifact.id)
        check("a file is kept", ([each.id for each in other.artifacts.list(sandbox=sandbox.id)], len(kept)), ([artifact.id], artifact.bytes))
        other.artifacts.remove(artifact.id)
    kinds = [event["kind"] for event in client.audit.events(project=project.id)]
    check("all of it is on record", (len(kinds) > 3, client.audit.verify(project=project.id).whole), (True, True))
    sequence = [event["seq"] for event in client.audit.events(project=project.id, last=2)]
    check("the last of it", sequence == sorted(sequence) and len(sequence) >= 2)
    with tempfile.TemporaryDirectory() as place:
        check("to take away", client.audit.export(Path(place) / "log", project=project.id) > 100)
    client.keys.remove(made.key.id)
    client.projects.remove(project.id)
    check("templates", ("base" in [each.name for each in client.templates.list()], client.templates.get("base").name), (True, "base"))
    said = []
    wrong = raises("a recipe that is none", belljar.Refused, lambda: client.templates.build(f"sdk-{mark}", "nonsense", progress=said.append))
    check("makes no template", (wrong.status, f"sdk-{mark}" in [each.name for each in client.templates.list()]), (400, False))
    raises("nor does an archive", belljar.Refused, lambda: client.templates.upload(f"sdk-{mark}", io.BytesIO(b"nonsense")))
    raises("no such template", belljar.NotFound, lambda: client.templates.remove(f"sdk-{mark}"))
    hook = client.webhooks.add("https://hooks.example.com/belljar", kinds=["sandbox.ended"])
    check("a webhook", (hook.secret.startswith("whsec_"), hook.secret in repr(hook), hook.id in [each.id for each in client.webhooks.list()]), (True, False, True))
    client.webhooks.remove(hook.id)
    check("nothing is removed by asking", client.collect_garbage(dry_run=True).dry_run)


async def awaiting():
    async with AsyncBelljar() as client:
        async with client.create() as sandbox:
            results = await asyncio.gather(*(sandbox.run(["echo", str(n)]) for n in range(5)))
            check("five at once", [result.stdout for result in results], [f"{n}\n" for n in range(5)])
            cat = await sandbox.start("cat", stdin=True)
            await cat.write("async\n")
            await cat.close_stdin()
            check("what it wrote", [event.text async for event in cat if isinstance(event, Output)], ["async\n"])
            async with sandbox.files.watch(".") as changes:
                await sandbox.files.write("new", "1")
                check("noticed", (await changes.__anext__()).name, "new")
            check("files", "new" in [each.name for each in await sandbox.files.list()])
            running = asyncio.create_task(sandbox.run("echo $$ > pid; sleep 1000"))
            while not await sandbox.files.exists("pid"):
                await asyncio.sleep(0.05)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            check("a command that is given up ends", [each.info.argv for each in await sandbox.processes() if await each.wait("20s") is None], [])
        check("left, it has ended", sandbox.info.has_ended)
        one, other = await asyncio.gather(client.create(), asyncio.create_task(client.create()))
        check("made beside each other", [(await each.refresh()).is_running for each in (one, other)], [True, True])
        await asyncio.gather(one.kill(), other.kill())


def main():
    with Belljar() as client:
        sandboxes(client)
        refusals(client)
        with client.create() as sandbox:
            for part in (commands, processes, files, hostile, ports):
                part(sandbox)
        administration(client)
    asyncio.run(awaiting())
    print(f"belljar (Python) {belljar.__version__}: {checked()} checks passed")


main()
