"""Daytona's unmodified Python SDK against a Belljar server: every basic feature once.

Needs only the SDK and its environment variables (DAYTONA_API_KEY, DAYTONA_API_URL). Ends with status 1 at the first difference.
"""

import asyncio
import threading
import uuid
from importlib.metadata import version

from daytona import CreateSandboxFromSnapshotParams, Daytona, DaytonaError, FileUpload, SessionExecuteRequest

try:
    from daytona import FileDownloadRequest
except ImportError:
    from daytona.common.filesystem import FileDownloadRequest
from daytona import DaytonaNotFoundError

from lab.checks import check, checked, raises

VERSION = tuple(int(part) for part in version("daytona").split("."))
# Newer SDKs know what went wrong, older ones know that something did.
NEW = VERSION >= (0, 200, 0)
PYTHON = "code-toolbox-language"


def listed(daytona, labels):
    if NEW:
        from daytona import ListSandboxesQuery

        return [sandbox.id for sandbox in daytona.list(ListSandboxesQuery(labels=labels))]
    return [sandbox.id for sandbox in daytona.list(labels=labels).items]


def sandboxes(daytona):
    mark, name = uuid.uuid4().hex, f"box {uuid.uuid4().hex}"
    wanted = CreateSandboxFromSnapshotParams(
        name=name, snapshot="base", language="python", labels={"mark": mark}, env_vars={"GREETING": "hello"}, auto_stop_interval=30
    )
    sandbox = daytona.create(wanted)
    check("what it was given is not given back", sandbox.env, {})
    check("its state", sandbox.state.value, "started")
    check("its name", sandbox.name, name)
    check("its labels", {**sandbox.labels, PYTHON: "python"}, {"mark": mark, PYTHON: "python"})
    check("its snapshot", sandbox.snapshot, "base")
    check("its user", sandbox.user, "user")
    check("it is stopped when nobody uses it", sandbox.auto_stop_interval, 30)
    check("it is found by its id", daytona.get(sandbox.id).name, name)
    check("and by its name", daytona.get(name).id, sandbox.id)
    raises("its name is its own", DaytonaError, lambda: daytona.create(wanted))
    check("it is listed by its labels", listed(daytona, {"mark": mark}), [sandbox.id])
    check("and by no others", listed(daytona, {"mark": "other"}), [])
    check("new labels", sandbox.set_labels({"mark": mark, "more": "x"}), {"mark": mark, "more": "x"})
    check("it is listed by those", listed(daytona, {"more": "x"}), [sandbox.id])
    sandbox.set_labels({"mark": mark, PYTHON: "python"})
    sandbox.set_autostop_interval(45)
    sandbox.refresh_data()
    check("another interval", (sandbox.auto_stop_interval, sandbox.name), (45, name))
    raises("there is no such sandbox", DaytonaNotFoundError, lambda: daytona.get("no-such-sandbox"))
    raises("there is no such snapshot", DaytonaError, lambda: daytona.create(CreateSandboxFromSnapshotParams(snapshot="no-such-snapshot")))
    other = daytona.create()
    check("a name of its own", other.name, other.id)
    other.delete()
    raises("what was deleted is not found", DaytonaNotFoundError, lambda: daytona.get(other.id))
    return sandbox


def commands(sandbox):
    run = sandbox.process.exec
    # Older SDKs take the last new line away when they look for charts.
    said = lambda *what, **more: run(*what, **more).result.rstrip("\n")
    check("output", said("echo $GREETING; echo oops >&2").split(), ["hello", "oops"])
    check("a failure", (run("exit 3").exit_code, run("kill -9 $$").exit_code), (3, 137))
    check("environment", said("echo $A$DAYTONA_SANDBOX_ID", env={"A": "x"}), f"x{sandbox.id}")
    check("directory", said("pwd", cwd="/tmp"), "/tmp")
    check("user", said("whoami; sudo whoami"), "user\nroot")
    check("a directory that is not there", run("true", cwd="/no/such").exit_code, -1)
    raises("a timeout", DaytonaError, lambda: run("sleep 30", timeout=1))
    check("much output", len(said("head -c 3000000 /dev/zero | tr '\\0' x")), 3000000)
    # Older SDKs make an argument of it.
    check("a long command", len(said("echo " + "x" * (200_000 if NEW else 50_000))), 200_000 if NEW else 50_000)
    code = sandbox.process.code_run("import sys, os\nprint(6 * 7, os.environ['B'])\nsys.exit(4)", params=parameters(env={"B": "b"}))
    check("code", (code.result.rstrip("\n"), code.exit_code), ("42 b", 4))
    arguments = sandbox.process.code_run("import sys; print(sys.argv[1:])", params=parameters(argv=["a"]))
    check("code's arguments", arguments.result.rstrip("\n"), "['a']")
    check("where it works", (sandbox.get_user_home_dir(), sandbox.get_work_dir()), ("/home/user", "/home/user"))


def parameters(**more):
    from daytona import CodeRunParams

    return CodeRunParams(**more)


def sessions(sandbox):
    process, session = sandbox.process, f"work {uuid.uuid4().hex}"
    process.create_session(session)
    raises("its name is its own", DaytonaError, lambda: process.create_session(session))
    run = lambda command, **more: process.execute_session_command(session, SessionExecuteRequest(command=command, **more))
    first = run("cd /tmp; export A=1; echo out; echo err >&2")
    check("output", (first.exit_code, first.stdout, first.stderr), (0, "out\n", "err\n"))
    check("what was set stays", run("pwd; echo $A").stdout, "/tmp\n1\n")
    check("a failure", run("(exit 5)").exit_code, 5)
    check("its logs", process.get_session_command_logs(session, first.cmd_id).stdout, "out\n")
    check("its command", process.get_session_command(session, first.cmd_id).exit_code, 0)
    check("its commands", [command.exit_code for command in process.get_session(session).commands], [0, 0, 5])
    check("it is listed", session in [one.session_id for one in process.list_sessions()])

    slow = run("echo one; read line; echo got $line; echo done >&2", run_async=True)
    check("it is not waited for", process.get_session_command(session, slow.cmd_id).exit_code, None)
    said = {"out": "", "err": ""}
    add = lambda kind: lambda text: said.update({kind: said[kind] + text})
    follower = threading.Thread(
        target=lambda: asyncio.run(process.get_session_command_logs_async(session, slow.cmd_id, add("out"), add("err")))
    )
    follower.start()
    while "one" not in process.get_session_command_logs(session, slow.cmd_id).stdout:
        check("it goes on", process.get_session_command(session, slow.cmd_id).exit_code, None)
    if NEW:
        process.send_session_command_input(session, slow.cmd_id, "word")
    else:
        sandbox.process.exec(f"pipe=$(ls /tmp/.*/{slow.cmd_id}.in); printf 'word\\n' > $pipe")
    follower.join(timeout=60)
    check("the log ends with the command", follower.is_alive(), False)
    check("what it said", (said["out"].replace("word\ngot", "got"), said["err"]), ("one\ngot word\n", "done\n"))
    check("how it ended", process.get_session_command(session, slow.cmd_id).exit_code, 0)
    process.delete_session(session)
    raises("what was deleted is not found", DaytonaError, lambda: process.get_session(session))


def files(sandbox):
    fs = sandbox.fs
    fs.create_folder("work/deep", "750")
    info = fs.get_file_info("work/deep")
    check("a directory", (info.is_dir, info.name, info.permissions, info.mode), (True, "deep", "0750", "drwxr-x---"))
    fs.upload_file(b"hello\n", "work/a.txt")
    check("its content", fs.download_file("work/a.txt"), b"hello\n")
    # Older SDKs read no escaped names.
    big, odd = bytes(range(256)) * 40_000, "work/ü \"q\".bin" if NEW else "work/a b.bin"
    fs.upload_files([FileUpload(big, "/home/user/work/deep/big"), FileUpload(b"two\nlines\n", odd), FileUpload(b"", "work/empty")])
    check("much content", fs.download_file("work/deep/big") == big)
    asked = [FileDownloadRequest(source="work/a.txt"), FileDownloadRequest(source=odd), FileDownloadRequest(source="work/none")]
    got = fs.download_files(asked)
    check("several", [bool(one.error) for one in got], [False, False, True])
    check("an odd name", got[1].result, b"two\nlines\n")
    error = raises("a file that is not there", DaytonaError, lambda: fs.download_file("work/none"))
    check("what it is", type(error).__name__ if NEW else "DaytonaFileNotFoundError", "DaytonaFileNotFoundError")
    check("the list", sorted(one.name for one in fs.list_files("work")), sorted(["a.txt", "deep", "empty", odd[5:]]))
    check("by name", fs.search_files("work", "*.txt").files, ["work/a.txt"])
    found = fs.find_files("work", "two")
    check("by content", [(one.file, one.line, one.content) for one in found], [(odd, 1, "two")])
    check("replaced", [one.success for one in fs.replace_in_files(["work/a.txt", "work/none"], "hello", "bye")], [True, False])
    check("with what", fs.download_file("work/a.txt"), b"bye\n")
    fs.set_file_permissions("work/a.txt", mode="600", owner="root", group="root")
    info = fs.get_file_info("work/a.txt")
    check("permissions", (info.permissions, info.owner, info.group), ("0600", "root", "root"))
    fs.move_files("work/empty", "work/moved")
    raises("nothing is moved onto something", DaytonaError, lambda: fs.move_files("work/moved", "work/deep"))
    fs.delete_file("work/moved")
    raises("it is gone", DaytonaNotFoundError, lambda: fs.get_file_info("work/moved"))
    if NEW:
        raises("a directory is not deleted by mistake", DaytonaError, lambda: fs.delete_file("work/deep"))
        fs.delete_file("work/deep", recursive=True)


def life(daytona, sandbox):
    sandbox.fs.upload_file(b"kept", "kept.txt")
    sandbox.stop()
    check("it is stopped", sandbox.state.value, "stopped")
    raises("nothing runs in it", DaytonaError, lambda: sandbox.process.exec("true"))
    check("it is still there", daytona.get(sandbox.id).state.value, "stopped")
    sandbox.start()
    check("it is started", sandbox.state.value, "started")
    check("its files are there", sandbox.fs.download_file("kept.txt"), b"kept")
    sandbox.delete()
    raises("it is gone", DaytonaNotFoundError, lambda: daytona.get(sandbox.id))


def main():
    daytona = Daytona()
    sandbox = sandboxes(daytona)
    for part in (commands, sessions, files):
        part(sandbox)
    life(daytona, sandbox)
    print(f"daytona {version('daytona')} (Python): {checked()} checks of the basics")


if __name__ == "__main__":
    main()
