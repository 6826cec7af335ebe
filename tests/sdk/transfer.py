"""A file of 256 MiB up and down through the Python SDK, blocking and awaiting, in memory that does not grow with it."""

import asyncio
import hashlib
import resource
import tempfile
from pathlib import Path

from belljar import AsyncBelljar, Belljar
from lab.checks import check, checked

MIB = 1 << 20
SIZE = 256
# Far below the file, far above what the interpreter and its libraries need besides.
ROOM = 48 * MIB


def most_memory():
    """The most that was ever in use."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def make(path):
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for n in range(SIZE):
            block = hashlib.sha256(b"%d" % n).digest() * (MIB // 32)
            digest.update(block)
            file.write(block)
    return digest.hexdigest()


def digest_of(path):
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(MIB):
            digest.update(piece)
    return digest.hexdigest()


def blocking(sandbox, here, back, digest):
    check("up", sandbox.files.upload(here, "big").size, SIZE * MIB)
    check("as it was", sandbox.run("sha256sum big").stdout.split()[0], digest)
    check("down", (sandbox.files.download("big", back), digest_of(back)), (SIZE * MIB, digest))
    back.unlink()


async def awaiting(id, here, back, digest):
    async with AsyncBelljar() as client, client.open(id) as sandbox:
        check("up, awaited", (await sandbox.files.upload(here, "big")).size, SIZE * MIB)
        check("down, awaited", (await sandbox.files.download("big", back), digest_of(back)), (SIZE * MIB, digest))


def main():
    with tempfile.TemporaryDirectory() as place, Belljar() as client, client.create(disk="1GiB", memory="1GiB") as sandbox:
        here, back = Path(place) / "here", Path(place) / "back"
        digest = make(here)
        sandbox.files.upload(__file__, "small")
        before = most_memory()
        blocking(sandbox, here, back, digest)
        asyncio.run(awaiting(sandbox.id, here, back, digest))
        grown = most_memory() - before
        check(f"memory, which grew by {grown // MIB} MiB", grown < ROOM)
    print(f"belljar (Python), {SIZE} MiB both ways, memory grew by {grown // MIB} MiB: {checked()} checks passed")


main()
