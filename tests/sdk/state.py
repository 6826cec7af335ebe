"""State through the Python SDK: pauses, snapshots, forks, roll-backs and volumes."""

import io
import os
import tempfile
import uuid
from pathlib import Path

import belljar
from belljar import Belljar, BelljarError, Sandbox
from lab.checks import check, checked, raises


def pauses(sandbox):
    counter = sandbox.start("i=0; while :; do i=$((i+1)); echo $i; sleep 0.2; done")
    events = iter(counter)
    before = int(next(events).text.split()[-1])
    check("it is paused", (sandbox.pause().state, sandbox.info.pause.memory), ("paused", "on-disk"))
    raises("and runs nothing", belljar.Conflict, lambda: sandbox.run("true"))
    check("it goes on", sandbox.resume(lease="10m").state, "running")
    check("so does its process, and its output where it was read", int(next(events).text.split()[0]) == before + 1)
    counter.kill()
    check("standby", (sandbox.pause("standby").pause.memory, sandbox.resume().is_running), ("resident", True))


def snapshots(client, sandbox):
    sandbox.files.write("state.txt", "before")
    name = f"sdk-{uuid.uuid4().hex[:8]}"
    taken = sandbox.snapshot(name, expires_in="1h")
    check("a snapshot", (taken.name, taken.kind, taken.sandbox), (name, "memory", sandbox.id))
    check("is listed", [each.id for each in client.snapshots.list(sandbox=sandbox.id)], [taken.id])
    sandbox.files.write("state.txt", "after")
    with client.create(snapshot=name) as copy:
        check("another begins with it", copy.files.read_text("state.txt"), "before")
        check("and says so", (copy.info.origin.snapshot, copy.id in [each.id for each in sandbox.tree().sandboxes]), (taken.id, True))
    for one in client.fork_snapshot(name, 2):
        with one:
            check("or two", (type(one), one.files.read_text("state.txt")), (Sandbox, "before"))
    check("it goes back", (sandbox.rollback(taken).is_running, sandbox.files.read_text("state.txt")), (True, "before"))
    files_only = sandbox.snapshot(kind="filesystem")
    check("files alone", files_only.kind, "filesystem")
    carried(client, files_only.id, f"{name}-back")
    for each in (taken.id, files_only.id):
        client.snapshots.remove(each)
    raises("removed", belljar.NotFound, lambda: client.snapshots.get(name))


def carried(client, snapshot, name):
    """A snapshot as a file has its template in it: half a minute each way, which only the full run takes."""
    refused = raises("what is no snapshot", belljar.Invalid, lambda: client.snapshots.upload(io.BytesIO(b"nonsense")))
    check("is refused", refused.code, "bad_snapshot_file")
    if os.environ.get("BELLJAR_FULL"):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "state.belljar"
            check("as a file", client.snapshots.download(snapshot, path), path.stat().st_size)
            back = client.snapshots.upload(path, name=name)
            check("and back", (back.kind, client.snapshots.get(name).id), ("filesystem", back.id))
            client.snapshots.remove(back.id)
        pushed = client.snapshots.push(snapshot)
        pulled = client.snapshots.pull(pushed.name, rename=f"{name}-pulled")
        check("pushed and pulled", (pushed.snapshot, pulled.name), (snapshot, f"{name}-pulled"))
        client.snapshots.remove(pulled.id)


def forks(sandbox):
    copies = sandbox.fork(2, env={"WHICH": "copy"}, metadata={"fork": "1"})
    for number, copy in enumerate(copies):
        with copy:
            copy.files.write("state.txt", str(number))
            check("a copy", (copy.run("cat state.txt; echo $WHICH").stdout, copy.info.metadata), (f"{number}copy\n", {"fork": "1"}))
    check("the origin is as it was", sandbox.files.read_text("state.txt"), "before")
    some = sandbox.fork_some(2)
    check("each by itself", [isinstance(each, BelljarError) for each in some], [False, False])
    for each in some:
        each.kill()
    raises("too many", belljar.Invalid, lambda: sandbox.fork(101))


def volumes(client):
    name = f"sdk-{uuid.uuid4().hex[:8]}"
    made = client.volumes.create(name, size="64MiB")
    check("a volume", (made.size_bytes, name in [each.name for each in client.volumes.list()]), (64 << 20, True))
    client.volumes.write_file(name, "/in/a.txt", "from outside", parents=True)
    with client.create(volumes=[f"{name}:/mnt/data"]) as sandbox:
        check("seen inside", sandbox.run("cat /mnt/data/in/a.txt").stdout, "from outside")
        sandbox.run("sudo sh -c 'echo from inside > /mnt/data/b.txt'", check=True)
        check("who has it", [each.sandbox for each in client.volumes.get(name).mounted_by], [sandbox.id])
        check("alone", raises("", belljar.Conflict, lambda: client.create(volumes=[f"{name}:/mnt"])).code, "volume_in_use")
    check("outlives it", client.volumes.read_file(name, "/b.txt"), b"from inside\n")
    copy = client.volumes.clone(name, f"{name}-copy", read_only=True)
    check("a copy", (copy.read_only, [each.name for each in client.volumes.list_files(copy.id)]), (True, ["b.txt", "in"]))
    client.volumes.make_directory(name, "/d", mode=0o700)
    check("its files", (client.volumes.move_file(name, "/b.txt", "/d/c.txt").path, client.volumes.stat_file(name, "/d").mode), ("/d/c.txt", "0700"))
    client.volumes.remove_file(name, "/d")
    raises("removed", belljar.NotFound, lambda: client.volumes.stat_file(name, "/d"))
    for each in (f"{name}-copy", name):
        client.volumes.remove(each)


def main():
    with Belljar() as client:
        with client.create() as sandbox:
            pauses(sandbox)
            snapshots(client, sandbox)
            forks(sandbox)
        volumes(client)
    print(f"belljar (Python), state: {checked()} checks passed")


main()
