"""Programs that use a vendor's unmodified packages, run against a server: each once with every version that it is written for, and given nothing but
environment variables."""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Callable

from .server import ROOT, Server, recover


@dataclass
class Suite:
    # The folder below tests/ that the programs are in, and what its lines of output begin with.
    name: str
    # Each program, and the packages it is written for.
    programs: dict
    # What the packages read, for a server.
    variables: Callable
    # What the sandboxes of a program are made from, if it is not there from the start.
    templates: dict

    def say(self, words):
        print(f"test-{self.name}: {words}", flush=True)

    def run(self, programs, environment, where=list):
        """`where` makes of a command what is to be run. How many passed and failed."""
        passed = failed = 0
        # What the programs share is found there.
        environment = {**environment, "PYTHONPATH": str(ROOT / "tests")}
        for program in programs:
            for sdk in self.programs[program]:
                for version in sdk.versions:
                    code = subprocess.run(where(sdk.command(version, self.name, program)), env=environment).returncode
                    good = code == 0
                    passed, failed = passed + good, failed + (not good)
                    if not good:
                        self.say(f"{program} with {sdk.package} {version} ({type(sdk).__name__}) ended with {code}")
        return passed, failed

    def on_own_server(self, isolation, programs, domain=None, settings="", where=list):
        """On the laboratory, where nothing may be left."""
        self.say(f"{', '.join(programs)} on the {isolation} class{', with host names and TLS' if domain else ''}")
        with tempfile.TemporaryDirectory() as directory:
            server = Server(directory, f'default_isolation = "{isolation}"\n{settings}', domain)
            try:
                server.wait()
                for template in {self.templates[program] for program in programs if program in self.templates}:
                    server.make_template(template)
                passed, failed = self.run(programs, {**os.environ, **self.variables(server)}, where)
                left = [sandbox["id"] for sandbox in server.ask("GET", "/v1/sandboxes?state=running")["sandboxes"]]
                stopped = server.stop()
            finally:
                server.process.kill()
            server.keep_words(f"{self.name}-{isolation}{'-tls' if domain else ''}")
            recover()
            if left or stopped != 0 or "panicked" in server.words():
                self.say(f"sandboxes left: {left}; the server ended with {stopped}; the end of its log:\n{server.words()[-3000:]}")
                failed += 1
        return passed, failed


def told(results):
    """The sum as the last line, and the status to end with."""
    passed, failed = (sum(column) for column in zip(*results))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
