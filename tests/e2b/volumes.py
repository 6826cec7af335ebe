"""Volumes through E2B's unmodified Python SDK against a Belljar server: the control plane, their content, and two sandboxes that share one.

Needs only the SDK and its environment variables (those of smoke.py, and E2B_VOLUME_API_URL). Ends with status 1 at the first difference.
"""

import io
import uuid

from e2b import NotFoundException, Sandbox, Volume
from e2b.exceptions import VolumeException, VolumeNotFoundException

from lab.checks import check, checked, raises


def control_plane(name):
    volume = Volume.create(name)
    check("its name", volume.name, name)
    check("its token", bool(volume.token))
    check("it is listed", [v.volume_id for v in Volume.list() if v.name == name], [volume.volume_id])
    info = Volume.get_info(volume.volume_id)
    check("what is told of it", (info.volume_id, info.name, info.token), (volume.volume_id, name, volume.token))
    check("connecting to it", Volume.connect(volume.volume_id).token, volume.token)
    raises("a name is taken once", Exception, lambda: Volume.create(name))
    raises("a name has to be one", Exception, lambda: Volume.create("a b"))
    raises("there is no such volume", VolumeNotFoundException, lambda: Volume.get_info("no-such-volume"))
    check("it is not there to be destroyed", Volume.destroy("no-such-volume"), False)
    return volume


def content(volume):
    check("written", volume.write_file("/hello.txt", "Hello, World!").size, 13)
    check("read", volume.read_file("/hello.txt"), "Hello, World!")
    check("an empty file", (volume.write_file("/empty", "").size, volume.read_file("/empty")), (0, ""))
    big = bytes(range(256)) * 20_000
    volume.write_file("/big.bin", io.BytesIO(big))
    check("many bytes", volume.read_file("/big.bin", format="bytes") == big)
    check("as a stream", b"".join(volume.read_file("/big.bin", format="stream")) == big)
    raises("what is there stays", VolumeException, lambda: volume.write_file("/hello.txt", "no"))
    volume.write_file("/hello.txt", "new", force=True)
    check("unless forced", volume.read_file("/hello.txt"), "new")
    raises("no such directory", NotFoundException, lambda: volume.write_file("/no/such/file", "x"))
    made = volume.make_dir("/deep/er", force=True, uid=1000, gid=1000, mode=0o750)
    check("a directory", (made.name, made.type.value, made.path, made.mode & 0o777), ("er", "directory", "/deep/er", 0o750))
    raises("which is made once", VolumeException, lambda: volume.make_dir("/deep/er"))
    raises("whose parents have to be there", NotFoundException, lambda: volume.make_dir("/not/there"))
    volume.write_file("/deep/er/file", "x", uid=1001, gid=1002, mode=0o600)
    info = volume.get_info("/deep/er/file")
    check("owner and mode", (info.uid, info.gid, info.mode, info.size), (1001, 1002, 0o600, 1))
    changed = volume.update_metadata("/deep/er/file", uid=1000, mode=0o644)
    check("changed", (changed.uid, changed.gid, changed.mode), (1000, 1002, 0o644))
    check("listed", sorted(entry.name for entry in volume.list("/")), ["big.bin", "deep", "empty", "hello.txt"])
    check("and deeper", sorted(entry.path for entry in volume.list("/deep", depth=2)), ["/deep/er", "/deep/er/file"])
    raises("what is not there is not listed", NotFoundException, lambda: volume.list("/nothing"))
    volume.remove("/deep")
    check("removed with all in it", volume.exists("/deep"), False)
    raises("once", NotFoundException, lambda: volume.remove("/deep"))
    raises("nothing above it", Exception, lambda: volume.read_file("/../../etc/passwd"))
    other = Volume(volume_id=volume.volume_id, name="x", token="wrong")
    raises("another token opens nothing", Exception, lambda: other.read_file("/hello.txt"))


def in_sandboxes(volume):
    first = Sandbox.create(template="base", timeout=120, volume_mounts={"/mnt/data": volume})
    second = Sandbox.create(template="base", timeout=120, volume_mounts={"/srv/same": volume.name})
    check("its mounts", first.get_info().volume_mounts, [{"name": volume.name, "path": "/mnt/data"}])
    check("what was sent is there", first.commands.run("cat /mnt/data/hello.txt").stdout, "new")
    first.commands.run("echo from first > /mnt/data/first; ln -s /etc/passwd /mnt/data/link; mkfifo /mnt/data/pipe")
    check("one writes, the other reads", second.commands.run("cat /srv/same/first").stdout, "from first\n")
    check("so does the volume", volume.read_file("/first"), "from first\n")
    check("a link is told", (volume.get_info("/link").type.value, volume.get_info("/link").target), ("symlink", "/etc/passwd"))
    raises("and leads nowhere", NotFoundException, lambda: volume.read_file("/link"))
    raises("a pipe holds nobody", NotFoundException, lambda: volume.read_file("/pipe"))
    raises("it is not destroyed under them", Exception, lambda: Volume.destroy(volume.volume_id))
    raises("there is no such volume", Exception, lambda: Sandbox.create(template="base", volume_mounts={"/d": "no-such-volume"}))
    raises("nor such a place", Exception, lambda: Sandbox.create(template="base", volume_mounts={"/proc": volume}))
    first.kill()
    second.kill()


name = f"test_{uuid.uuid4().hex[:12]}"
volume = control_plane(name)
content(volume)
in_sandboxes(volume)
check("it is destroyed", Volume.destroy(volume.volume_id))
check("once", Volume.destroy(volume.volume_id), False)
print(f"e2b (Python), volumes: {checked()} checks passed")
