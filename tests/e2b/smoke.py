"""E2B's unmodified Python SDK against a Belljar server: every basic feature once.

Needs only the SDK and its environment variables (E2B_API_KEY, E2B_API_URL, E2B_SANDBOX_URL). Ends with status 1 at the first difference.
"""

import inspect
import threading
import time
import urllib.request
import uuid

import e2b
from e2b import CommandExitException, FilesystemEventType, NotFoundException, Sandbox, TimeoutException

from lab.checks import check, checked, raises


def sandboxes():
    mark = uuid.uuid4().hex
    sandbox = Sandbox.create(template="base", timeout=120, metadata={"mark": mark, "odd": "a b&c=%"}, envs={"GREETING": "hello"})
    check("it runs", sandbox.is_running())
    info = sandbox.get_info()
    check("its metadata", info.metadata, {"mark": mark, "odd": "a b&c=%"})
    check("its id", info.sandbox_id, sandbox.sandbox_id)
    query = e2b.SandboxQuery(metadata={"mark": mark, "odd": "a b&c=%"})
    found = Sandbox.list(query=query).next_items()
    check("it is listed by its metadata", [item.sandbox_id for item in found], [sandbox.sandbox_id])
    nothing = Sandbox.list(query=e2b.SandboxQuery(metadata={"mark": "other"})).next_items()
    check("and by no other", nothing, [])
    again = Sandbox.connect(sandbox.sandbox_id, timeout=10)
    check("connecting does not shorten its life", again.get_info().end_at, info.end_at)
    sandbox.set_timeout(300)
    check("a longer life", sandbox.get_info().end_at > info.end_at)
    other = Sandbox.create(template="base", timeout=60, metadata={"mark": mark})
    pages = Sandbox.list(query=e2b.SandboxQuery(metadata={"mark": mark}), limit=1)
    first, second = pages.next_items(), pages.next_items()
    check("pages, newest first", [first[0].sandbox_id, second[0].sandbox_id], [other.sandbox_id, sandbox.sandbox_id])
    check("no third page", pages.has_next, False)
    check("it is killed", other.kill())
    check("it does not run", other.is_running(), False)
    check("it is killed once", Sandbox.kill(other.sandbox_id), False)
    raises("what was killed is not found", NotFoundException, lambda: Sandbox.connect(other.sandbox_id))
    raises("there is no such template", Exception, lambda: Sandbox.create(template="no-such-template"))
    return sandbox


def commands(sandbox):
    check("output", sandbox.commands.run("echo $GREETING; echo oops >&2").stdout, "hello\n")
    check("error output", sandbox.commands.run("echo oops >&2").stderr, "oops\n")
    check("environment", sandbox.commands.run("echo $A$E2B_SANDBOX", envs={"A": "x"}).stdout, "xtrue\n")
    check("directory", sandbox.commands.run("pwd", cwd="/tmp").stdout, "/tmp\n")
    check("user", sandbox.commands.run("whoami").stdout, "user\n")
    check("another user", sandbox.commands.run("whoami", user="root").stdout, "root\n")
    check("sudo", sandbox.commands.run("sudo whoami").stdout, "root\n")
    failed = raises("a failure", CommandExitException, lambda: sandbox.commands.run("exit 3"))
    check("its code", failed.exit_code, 3)
    raises("a user who is not there", Exception, lambda: sandbox.commands.run("true", user="nobody-at-all"))
    raises("a directory that is not there", Exception, lambda: sandbox.commands.run("true", cwd="/no/such"))
    raises("a timeout", TimeoutException, lambda: sandbox.commands.run("sleep 30", timeout=1))
    big = sandbox.commands.run("head -c 3000000 /dev/zero | tr '\\0' x")
    check("much output", len(big.stdout), 3000000)

    reader = sandbox.commands.run("cat", background=True, stdin=True)
    check("it is listed", reader.pid in [process.pid for process in sandbox.commands.list()])
    sandbox.commands.send_stdin(reader.pid, "one\n")
    sandbox.commands.send_stdin(reader.pid, "two\n")
    sandbox.commands.close_stdin(reader.pid)
    check("what it read", reader.wait().stdout, "one\ntwo\n")

    sleeper = sandbox.commands.run("sleep 100", background=True)
    follower = sandbox.commands.connect(sleeper.pid)
    check("it is killed", sandbox.commands.kill(sleeper.pid))
    error = raises("its end", CommandExitException, follower.wait)
    check("how it ended", error.error, "signal: killed")
    check("it is killed once", sandbox.commands.kill(sleeper.pid), False)


def terminals(sandbox):
    from e2b.sandbox.commands.command_handle import PtySize

    terminal = sandbox.pty.create(PtySize(cols=80, rows=24))
    seen = []
    sandbox.pty.resize(terminal.pid, PtySize(cols=100, rows=30))
    sandbox.pty.send_stdin(terminal.pid, b"tput cols; exit\n")
    terminal.wait(on_pty=lambda data: seen.append(data))
    check("a terminal of another size", b"100" in b"".join(seen))


def files(sandbox):
    fs = sandbox.files
    fs.write("notes/a.txt", "hällo")
    check("what was written", fs.read("notes/a.txt"), "hällo")
    info = fs.get_info("notes/a.txt")
    check("where it is", info.path, "/home/user/notes/a.txt")
    check("whose it is", (info.owner, info.permissions), ("user", "-rw-r--r--"))
    check("as root", fs.write("/root/b", "b", user="root").path, "/root/b")
    data = bytes(range(256)) * 20000
    fs.write("/tmp/big", data)
    check("5 MB", bytes(fs.read("/tmp/big", format="bytes")) == data)
    check("a new directory", fs.make_dir("d/e"))
    check("one that is there", fs.make_dir("d/e"), False)
    fs.write("d/e/f", "")
    check("an empty file", fs.read("d/e/f"), "")
    check("a list", [entry.path for entry in fs.list("d", depth=2)], ["/home/user/d/e", "/home/user/d/e/f"])
    check("renamed", fs.rename("d/e/f", "d/g").path, "/home/user/d/g")
    # The oldest SDK knows of none.
    if "metadata" in inspect.signature(fs.write).parameters:
        check("a file's own metadata", fs.write("noted", "x", metadata={"kind": "report"}).metadata, {"kind": "report"})
        fs.rename("noted", "moved")
        check("which stays with it", fs.get_info("moved").metadata, {"kind": "report"})
        check("until it is written anew", (fs.write("moved", "y").metadata, fs.get_info("moved").metadata), (None, None))
    check("exists", (fs.exists("d/g"), fs.exists("d/e/f")), (True, False))
    fs.remove("d")
    check("removed", fs.exists("d"), False)
    raises("what is not there", NotFoundException, lambda: fs.read("no-such-file"))
    check("a file without a size", len(fs.read("/proc/self/status")) > 0)

    fs.make_dir("watched")
    watch = fs.watch_dir("watched", recursive=True)
    fs.write("watched/x", "1")
    events = watch.get_new_events()
    check("first it is made", events[0].type, FilesystemEventType.CREATE)
    check("three events", [event.name for event in events], ["x", "x", "x"])
    watch.stop()

    link = sandbox.download_url("notes/a.txt", user="user", use_signature_expiration=60)
    check("a signed link", urllib.request.urlopen(link).read().decode(), "hällo")
    raises("a forged link", Exception, lambda: urllib.request.urlopen(link.replace("notes", "other")).read())


def snapshots(sandbox):
    sandbox.files.write("state.txt", "before")
    taken = sandbox.create_snapshot(name="smoke")
    check("a snapshot has a name", any("smoke" in name for name in taken.names))
    listed = Sandbox.list_snapshots(sandbox_id=sandbox.sandbox_id).next_items()
    check("it is listed", [item.snapshot_id for item in listed], [taken.snapshot_id])
    sandbox.files.write("state.txt", "after")
    copy = Sandbox.create(taken.snapshot_id, timeout=60)
    check("a sandbox begins as the snapshot", copy.files.read("state.txt"), "before")
    copy.files.write("state.txt", "copy")
    check("and is apart from its origin", sandbox.files.read("state.txt"), "after")
    check("a snapshot is removed", Sandbox.delete_snapshot(taken.snapshot_id))
    check("once", Sandbox.delete_snapshot(taken.snapshot_id), False)
    check("what was made from it lives on", copy.files.read("state.txt"), "copy")
    copy.kill()
    raises("a snapshot of what was killed", NotFoundException, copy.create_snapshot)
    if hasattr(Sandbox, "fork"):
        forks = sandbox.fork(count=2, timeout=60)
        check("two forks", [isinstance(fork, Sandbox) for fork in forks], [True, True])
        for number, fork in enumerate(forks):
            check("a fork has its origin's files", fork.files.read("state.txt"), "after")
            fork.files.write("state.txt", str(number))
        check("forks are apart", [fork.files.read("state.txt") for fork in forks], ["0", "1"])
        check("the origin goes on", sandbox.files.read("state.txt"), "after")
        for fork in forks:
            fork.kill()


def pauses(sandbox):
    sleeper = sandbox.commands.run("sleep 1000", background=True, timeout=0)
    sandbox.pause()
    check("it is paused", sandbox.get_info().state.value, "paused")
    again = Sandbox.connect(sandbox.sandbox_id, timeout=300)
    check("connecting resumes it", again.get_info().state.value, "running")
    check("its processes went on", sleeper.pid in [process.pid for process in again.commands.list()])
    check("and are killed", again.commands.kill(sleeper.pid))
    measured = again.get_metrics()
    check("its use is measured", measured[-1].mem_total > 0)

    short = Sandbox.create(template="base", timeout=1, lifecycle={"on_timeout": {"action": "pause", "keep_memory": False}})
    for _ in range(100):
        state = Sandbox.get_info(short.sandbox_id).state.value
        if state == "paused":
            break
        time.sleep(0.2)
    check("it is paused when its time is over", state, "paused")
    check("and is killed all the same", Sandbox.kill(short.sandbox_id))


def ends(sandbox):
    running = sandbox.commands.run("sleep 1000", background=True)
    ended = []

    def follow():
        try:
            running.wait()
        except Exception as error:
            ended.append(error)

    follower = threading.Thread(target=follow)
    follower.start()
    time.sleep(0.5)
    check("it is killed", sandbox.kill())
    follower.join(30)
    check("a stream of what was killed ends", [isinstance(error, TimeoutException) for error in ended], [True])
    check("and says why", "killed or reached its end of life" in str(ended[0]), True)


def main():
    sandbox = sandboxes()
    commands(sandbox)
    terminals(sandbox)
    files(sandbox)
    snapshots(sandbox)
    pauses(sandbox)
    ends(sandbox)
    print(f"e2b (Python) {e2b.__version__ if hasattr(e2b, '__version__') else ''}: {checked()} checks passed")


main()
