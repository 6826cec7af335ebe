"""What every attempt shares: raw system calls, facts about the target, and the only ways to end.

An attempt says `ESCAPED: <evidence>` or `BLOCKED: <reason>` as its last line and exits 0. Anything else is a broken attempt.
It runs in a child, so that a system-call filter that kills is seen as a block and not as a crash.
"""

import ctypes
import errno
import hashlib
import os
import signal
import sys
import traceback

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _say(verdict, text):
    line = " ".join(str(text).encode("ascii", "backslashreplace").decode().split())[:300]
    sys.stderr.flush()
    os.write(1, f"{verdict}: {line}\n".encode())
    os._exit(0)


def escaped(evidence):
    """The boundary was crossed, and this shows it."""
    _say("ESCAPED", evidence)


def blocked(reason):
    """It got nowhere, and this is what stood in the way."""
    _say("BLOCKED", reason)


def own_kernel():
    """The release of the kernel that answers us, if that is not the host's; else None."""
    release = os.uname().release
    return None if release == os.environ.get("ESCAPE_HOST_RELEASE", release) else release


def reached(evidence):
    """A privileged call went through. That is an escape unless the kernel that took it is the sandbox's own."""
    own = own_kernel()
    if own:
        blocked(f"stayed inside the sandbox's own kernel ({own}): {evidence}")
    escaped(evidence)


def fact(name):
    """What the suite told us about the target."""
    return os.environ["ESCAPE_" + name]


def is_canary(data):
    """Whether these bytes are the secret that only the host has. We know its hash, not its text."""
    return hashlib.sha256(data.strip()).hexdigest() == fact("CANARY")


def read_canary(path):
    """Ends as escaped if the host's secret can be read at `path`; raises what the kernel said if nothing can be read."""
    with open(path, "rb") as file:
        if is_canary(file.read(4096)):
            escaped(f"read the host's secret at {path}")


def name_of(error):
    """ENOENT and the like."""
    return errno.errorcode.get(error.errno, str(error.errno))


def syscall(number, *arguments):
    """A raw system call; raises OSError."""
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(number), *converted)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def first_success(tries):
    """Calls each (label, function) until one does not raise. Returns its label and result, or ends as blocked with all answers."""
    answers = []
    for label, function in tries:
        try:
            return label, function()
        except OSError as error:
            answers.append(f"{label}: {name_of(error)}")
    blocked("; ".join(answers) or "nothing to try")


def mount(source, target, kind, flags=0, data=None):
    """mount(2)"""
    encode = lambda text: text.encode() if isinstance(text, str) else text
    syscall(165, encode(source), encode(target), encode(kind), flags, encode(data))


def scratch(name):
    """A directory of ours."""
    path = f"/tmp/escape-{os.getpid()}-{name}"
    os.makedirs(path, exist_ok=True)
    return path


def in_child(function):
    """Runs `function` in a child and returns what it returned as text, or raises its OSError. For calls that change the caller."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = f"0 {function()}"
        except OSError as error:
            answer = f"{error.errno} "
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) == signal.SIGSYS:
            raise OSError(errno.EPERM, "killed by the system-call filter")
        raise OSError(errno.EIO, f"child died of signal {os.WTERMSIG(status)}")
    code, _, text = answer.partition(" ")
    if code != "0":
        raise OSError(int(code), os.strerror(int(code)))
    return text


def run(attempt, deaths=(signal.SIGSYS,)):
    """Runs the attempt in a child. Dying of one of `deaths` counts as blocked."""
    pid = os.fork()
    if pid == 0:
        try:
            attempt()
        except OSError as error:
            blocked(f"{name_of(error)}: {error}")
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        print("the attempt ended without a verdict", file=sys.stderr)
        os._exit(1)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in deaths:
        blocked(f"killed by {signal.Signals(os.WTERMSIG(status)).name}")
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
