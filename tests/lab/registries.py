"""Stand-ins for registries of packages, as files below one directory a host: whoever serves them as they are is such a registry.

  registries.py DIRECTORY

Each has one package, `parcel`, that says who it is. Needs git and dpkg-deb.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def python(root):
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as files:
        about = "parcel-1.0.dist-info"
        files.writestr("parcel.py", "NAME = 'a parcel for python'\n")
        files.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: parcel\nVersion: 1.0\n")
        files.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        files.writestr(f"{about}/RECORD", f"parcel.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
    name = "parcel-1.0-py3-none-any.whl"
    write(root / "files" / name, wheel.getvalue())
    digest = hashlib.sha256(wheel.getvalue()).hexdigest()
    write(root / "simple/parcel/index.html", f'<!DOCTYPE html><html><body><a href="/files/{name}#sha256={digest}">{name}</a></body></html>')


def node(root):
    package = {"name": "parcel", "version": "1.0.0", "main": "index.js"}
    tarball = archive({"package/package.json": json.dumps(package), "package/index.js": "module.exports = 'a parcel for node';\n"})
    write(root / "parcel/-/parcel-1.0.0.tgz", tarball)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    dist = {"tarball": f"https://{root.name}/parcel/-/parcel-1.0.0.tgz", "integrity": integrity, "shasum": hashlib.sha1(tarball).hexdigest()}
    versions = {"1.0.0": {**package, "dist": dist}}
    write(root / "parcel/index.json", json.dumps({"name": "parcel", "dist-tags": {"latest": "1.0.0"}, "versions": versions}))


def debian(root):
    place = root / "build"
    write(place / "usr/bin/parcel", "#!/bin/sh\necho a parcel for debian\n")
    os.chmod(place / "usr/bin/parcel", 0o755)
    control = "Package: parcel\nVersion: 1.0\nArchitecture: all\nMaintainer: Lab <lab@registry.test>\nDescription: a parcel\n"
    write(place / "DEBIAN/control", control)
    package = root / "parcel_1.0_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", place, package], check=True, stdout=subprocess.DEVNULL)
    data = package.read_bytes()
    listed = f"{control}Filename: ./{package.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n".encode()
    write(root / "Packages", listed)
    write(root / "Packages.gz", gzip.compress(listed))
    sums = "".join(f" {hashlib.sha256((root / name).read_bytes()).hexdigest()} {(root / name).stat().st_size} {name}\n" for name in ("Packages", "Packages.gz"))
    write(root / "Release", f"Origin: lab\nDate: Sun, 15 Nov 2026 00:00:00 UTC\nSHA256:\n{sums}")


def repository(root):
    place = root / "work"
    write(place / "README", "a parcel from git\n")
    who = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(root)}
    for name in ("AUTHOR", "COMMITTER"):
        who |= {f"GIT_{name}_NAME": "Lab", f"GIT_{name}_EMAIL": "lab@registry.test"}
    bare = root / "parcel.git"
    for words in (["init", "-q", "-b", "main", place], ["-C", place, "add", "README"], ["-C", place, "commit", "-q", "-m", "A parcel"],
                  ["clone", "-q", "--bare", place, bare], ["-C", bare, "repack", "-q", "-a", "-d"], ["-C", bare, "update-server-info"]):
        subprocess.run(["git", *words], check=True, env=who)


def cargo(root):
    manifest = '[package]\nname = "parcel"\nversion = "1.0.0"\nedition = "2021"\n'
    library = 'pub const NAME: &str = "a parcel for cargo";\n'
    crate = archive({"parcel-1.0.0/Cargo.toml": manifest, "parcel-1.0.0/src/lib.rs": library})
    write(root / "crates/parcel/1.0.0/download", crate)
    write(root / "index/config.json", json.dumps({"dl": f"https://{root.name}/crates"}))
    line = {"name": "parcel", "vers": "1.0.0", "deps": [], "cksum": hashlib.sha256(crate).hexdigest(), "features": {}, "yanked": False}
    write(root / "index/pa/rc/parcel", json.dumps(line) + "\n")


if __name__ == "__main__":
    below = Path(sys.argv[1])
    for make in (python, node, debian, repository, cargo):
        place = below / f"{make.__name__}.registry.test"
        place.mkdir(parents=True)
        make(place)
