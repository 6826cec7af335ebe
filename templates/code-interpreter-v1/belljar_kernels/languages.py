"""Which languages there are, and what runs them.

A language's kernel speaks Jupyter's protocol, or lines of JSON where there is no such kernel to be had (`lines`).
"""

import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from typing import Callable, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
JAVA_CLASSES = os.path.join(os.path.dirname(HERE), "java")
CONNECTION_FILE = "{connection_file}"

ALIASES = {"py": "python", "python3": "python", "js": "javascript", "node": "javascript", "ts": "typescript", "sh": "bash"}


@dataclass(frozen=True)
class Language:
    """How a language is run. `set_env` makes code that sets variables (and unsets those that are None), for kernels that only take code."""

    name: str
    argv: list
    speaks: str
    # Whether code finds the environment of its kernel's process; if not, variables are set one by one.
    inherits: bool = True
    set_env: Optional[Callable[[dict], str]] = None

    def is_there(self) -> bool:
        return shutil.which(self.argv[0]) is not None and all(os.path.exists(part) for part in self.argv if part.startswith(os.path.dirname(HERE)))


def _python_env(values: dict) -> str:
    # One expression that leaves no name behind.
    return "\n".join(
        f"__import__('os').environ.pop({name!r}, None)" if value is None else f"__import__('os').environ.__setitem__({name!r}, {value!r})"
        for name, value in values.items()
    )


def _bash_env(values: dict) -> str:
    return "\n".join(f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}" for name, value in values.items())


def _r_env(values: dict) -> str:
    quoted = lambda text: json.dumps(text, ensure_ascii=False)
    return "\n".join(
        f"invisible(Sys.unsetenv({quoted(name)}))" if value is None else f"invisible(do.call(Sys.setenv, setNames(list({quoted(value)}), {quoted(name)})))"
        for name, value in values.items()
    )


_PYTHON = [
    sys.executable, "-m", "ipykernel_launcher", "-f", CONNECTION_FILE, "--InteractiveShell.colors=NoColor",
    "--PlainTextFormatter.max_seq_length=0", "--IPKernelApp.extensions=belljar_kernels.display", "--HistoryManager.enabled=False",
]

LANGUAGES = {
    language.name: language
    for language in [
        Language("python", _PYTHON, "jupyter", set_env=_python_env),
        Language("javascript", ["node", "--disable-warning=ExperimentalWarning", os.path.join(HERE, "javascript.cjs")], "lines"),
        Language("typescript", ["node", "--disable-warning=ExperimentalWarning", os.path.join(HERE, "javascript.cjs"), "--typescript"], "lines"),
        Language("bash", [sys.executable, "-P", "-m", "bash_kernel", "-f", CONNECTION_FILE], "jupyter", set_env=_bash_env),
        Language("r", ["R", "--slave", "-e", "IRkernel::main()", "--args", CONNECTION_FILE], "jupyter", set_env=_r_env),
        Language("java", ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", JAVA_CLASSES, "JavaKernel"], "lines", inherits=False),
    ]
}


def find(name: str) -> Optional[Language]:
    """A language by any of its names; None if it is unknown or its kernel is not installed."""
    name = name.strip().lower()
    language = LANGUAGES.get(ALIASES.get(name, name))
    return language if language is not None and language.is_there() else None


def installed() -> list:
    return [name for name, language in LANGUAGES.items() if language.is_there()]
