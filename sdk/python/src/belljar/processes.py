"""A process in a sandbox: its output as it comes, its input, its signals and its end. It does not depend on the connection, nor on the server's life: output is read
and input is written by offset, so whoever comes back goes on at the byte where they were.
"""

from __future__ import annotations

import base64
import secrets
from typing import Any, AsyncIterator, Callable, Iterator, Mapping, Optional, Sequence, Union

from .asking import Caller
from .awaiting import AsyncStream
from .blocking import Stream
from .errors import BadAnswer, BelljarError, CommandFailed, Ended, GuestRefused, Misuse, NotFound, Refused
from .lines import LineReader
from .output import Gathered, Position, follow
from .plan import Aside, Awaiting, Blocking, Feed, Plan, Send, Verbs, each, stream, verb
from .process_models import Cleaning, Event, Exit, Output, ProcessInfo, Result, omitted
from .quantities import Duration, Size, as_bytes, as_seconds
from .request import Request, asking, at

Command = Union[str, Sequence[str]]
Terminal = tuple[int, int]
Signal = Union[int, str]
# Is told of output as it comes.
Listener = Callable[[Output], object]

# Attached, a process waits for whoever reads it; a detached one must not wait for somebody who never comes.
KEPT_ATTACHED = 1 << 20
KEPT_DETACHED = 4 << 20
MOST_OF_A_RESULT = 16 << 20
PIECE_OF_INPUT = 1 << 20
LONGEST_WAIT = 60.0


def command_fields(command: Command) -> dict[str, Any]:
    """A line for the shell, or a program and its arguments."""
    if isinstance(command, str):
        return {"command": command}
    if not command:
        raise Misuse("command", "a line for the shell, or a list of words", command)
    return {"argv": list(command)}


def start_fields(
    command: Command, *, env: Optional[Mapping[str, str]], cwd: Optional[str], user: Optional[str], stdin: bool, pty: Optional[Terminal],
    timeout: Optional[Duration], spool: tuple[int, str], tag: Optional[str] = None, id: Optional[str] = None,
) -> dict[str, Any]:
    """A process to start, with an id of ours: however often this is sent, it is started once."""
    return {
        "id": id or "p" + secrets.token_hex(12),
        **command_fields(command),
        "env": dict(env or {}),
        "cwd": cwd,
        "user": user,
        "stdin": stdin,
        "pty": None if pty is None else {"columns": pty[0], "rows": pty[1]},
        "tag": tag,
        "deadline_seconds": None if timeout is None else as_seconds("timeout", timeout),
        "spool": {"capacity_bytes": spool[0], "overflow": spool[1]},
    }


def start_request(sandbox: str, fields: Mapping[str, Any]) -> Request:
    """Asks for it."""
    return asking("POST", at("v1", "sandboxes", sandbox, "processes"), json=fields, repeatable=True)


def _verb_of(sandbox: str, process: str, method: str, name: str, **more: Any) -> Request:
    return asking(method, at("v1", "sandboxes", sandbox, "processes", process, name), **more)


def write_input(caller: Caller, sandbox: str, process: str, offset: int, data: bytes) -> Plan[int]:
    """Returns when all was taken, with the next offset. A piece that is sent twice is taken once, because it says where it belongs."""
    for begin in range(0, len(data), PIECE_OF_INPUT):
        piece = data[begin : begin + PIECE_OF_INPUT]
        yield from caller.ask(_verb_of(sandbox, process, "POST", "stdin", query={"offset": offset}, body=piece, repeatable=True))
        offset += len(piece)
    return offset


def end_input(caller: Caller, sandbox: str, process: str) -> Plan[None]:
    """It reads end of file."""
    yield from caller.ask(_verb_of(sandbox, process, "DELETE", "stdin", repeatable=True))


def takes_no_more(error: BelljarError) -> bool:
    """The process has closed its input or is gone: its output and end say the rest."""
    return isinstance(error, GuestRefused) or (isinstance(error, NotFound) and error.code == "process_not_found")


def signal_request(sandbox: str, process: str, signal: Signal) -> Request:
    """Sends a signal to a process and what it started."""
    word = int(signal) if isinstance(signal, int) else signal
    return _verb_of(sandbox, process, "POST", "signal", json={"signal": word})


def run_to_the_end(
    caller: Caller, sandbox: str, fields: Mapping[str, Any], input: Optional[bytes], most: int, on_output: Optional[Listener],
) -> Plan[Result]:
    """Starts a process and gathers what it writes to its end, through restarts of the server. Whoever gives up on it ends it."""
    process = str(fields["id"])
    try:
        begun = yield from caller.lines(start_request(sandbox, fields))
        return (yield from gather(caller, sandbox, process, Position(), most, input, 0, begun, on_output))
    except (GeneratorExit, Refused):
        # Given up by nobody, or it never began or is gone.
        raise
    except BaseException:
        yield from kill_quietly(sandbox, process)
        raise


def gather(
    caller: Caller, sandbox: str, process: str, position: Position, most: int, input: Optional[bytes], taken: int, begun: Optional[LineReader] = None,
    on_output: Optional[Listener] = None,
) -> Plan[Result]:
    """What it still writes, to its end. Input goes in meanwhile, so that neither waits for the other."""
    gathered = {"stdout": Gathered(most), "stderr": Gathered(most)}
    ends: list[Exit] = []
    failures: list[BelljarError] = []

    def take(event: Event) -> None:
        if isinstance(event, Exit):
            ends.append(event)
        else:
            gathered[event.stream].take(event)
            if on_output is not None and isinstance(event, Output):
                on_output(event)

    if input is not None:
        yield Aside(give_input(caller, sandbox, process, taken, input, failures))
    yield from each(follow(caller, sandbox, process, position, begun), take)
    if failures:
        raise failures[0]
    (stdout, stdout_omitted), (stderr, stderr_omitted) = gathered["stdout"].finish(), gathered["stderr"].finish()
    return Result(ends[-1], stdout, stderr, stdout_omitted, stderr_omitted, process=process)


def give_input(caller: Caller, sandbox: str, process: str, taken: int, input: bytes, failures: list[BelljarError]) -> Plan[None]:
    """All of it, and its end. That it is not wanted is no failure; if it cannot be given, the process ends instead of waiting for it."""
    try:
        yield from write_input(caller, sandbox, process, taken, input)
        yield from end_input(caller, sandbox, process)
    except BelljarError as error:
        if not takes_no_more(error) and not isinstance(error, Ended):
            failures.append(error)
            yield from kill_quietly(sandbox, process)


def kill_quietly(sandbox: str, process: str) -> Plan[None]:
    """Ends a process for which something has failed already; that says more."""
    try:
        yield Send(_verb_of(sandbox, process, "POST", "signal", json={"signal": "KILL"}, silence=5.0))
    except BelljarError:
        pass


def run_cleaned(
    caller: Caller, sandbox: str, fields: Mapping[str, Any], input: Optional[bytes], most: int, escapes: Optional[str], mask: Sequence[str],
) -> Plan[Result]:
    """Runs a command whose output the server makes fit to be read. It ends with the request: this one does not outlive a restart of the server."""
    known = {name: fields.get(name) for name in ("command", "argv", "env", "cwd", "user")}
    request = asking(
        "POST", at("v1", "sandboxes", sandbox, "exec"),
        json={
            **known,
            "timeout_seconds": fields.get("deadline_seconds"),
            "stdin_base64": None if input is None else base64.b64encode(input).decode(),
            "max_output_bytes": most,
            "output": {"escapes": escapes or "strip", "mask": list(mask)},
        },
    )
    data = yield from caller.json(request)
    try:
        cleaned = [None if data.get(f"{name}_cleaning") is None else Cleaning.from_json(data[f"{name}_cleaning"]) for name in ("stdout", "stderr")]
        return Result(
            Exit.from_json(data), _decoded(data, "stdout"), _decoded(data, "stderr"), omitted(data.get("stdout_omitted")),
            omitted(data.get("stderr_omitted")), cleaned[0], cleaned[1], process=str(data["process"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadAnswer(caller.url, str(error)) from error


def _decoded(data: Mapping[str, Any], name: str) -> bytes:
    text = str(data[name])
    return base64.b64decode(text) if data[f"{name}_encoding"] == "base64" else text.encode()


def checked(result: Result, check: bool) -> Result:
    """The result, if it is a good one or need not be."""
    if check and not result.ok:
        raise CommandFailed(result)
    return result


class ProcessVerbs(Verbs):
    """What can be done with a process."""

    sandbox_id: str
    info: ProcessInfo
    _position: Position
    _taken: int

    def _be(self, sandbox: str, info: ProcessInfo) -> None:
        self.sandbox_id, self.info = sandbox, info
        self._position, self._taken = Position(), info.stdin_offset

    @property
    def id(self) -> str:
        """Its id: `sandbox.process(id)` finds it again, from anywhere."""
        return self.info.id

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r}, sandbox={self.sandbox_id!r}, argv={self.info.argv!r:.200})"

    @property
    def offsets(self) -> dict[str, int]:
        """How far its output was read here: give them to `events` to go on there, later or elsewhere."""
        return dict(self._position.next)

    def _going_on(self) -> Feed[Event]:
        return follow(self._caller, self.sandbox_id, self.id, self._position)

    @stream
    def events(self, stdout: int = 0, stderr: int = 0) -> Feed[Event]:
        """Its output from these offsets on, to its end, through lost connections: `Output`, `Gap` and at last `Exit`."""
        yield from follow(self._caller, self.sandbox_id, self.id, Position(stdout, stderr))

    @verb
    def refresh(self) -> Plan[ProcessInfo]:
        """Asks how it is now."""
        path = at("v1", "sandboxes", self.sandbox_id, "processes", self.id)
        self.info = yield from self._caller.fetch(asking("GET", path), ProcessInfo)
        return self.info

    @verb
    def write(self, data: Union[str, bytes]) -> Plan[None]:
        """Writes to its standard input, or types at its terminal. Returns when all was taken; a restart of the server in between repeats nothing."""
        data = data.encode() if isinstance(data, str) else data
        self._taken = yield from write_input(self._caller, self.sandbox_id, self.id, self._taken, data)

    @verb
    def close_stdin(self) -> Plan[None]:
        """It reads end of file."""
        yield from end_input(self._caller, self.sandbox_id, self.id)

    @verb
    def signal(self, signal: Signal) -> Plan[None]:
        """Sends a signal, by name (`"INT"`) or number, to it and what it started."""
        yield from self._caller.done(signal_request(self.sandbox_id, self.id, signal))

    @verb
    def kill(self) -> Plan[None]:
        """Kills it and what it started."""
        yield from self._caller.done(signal_request(self.sandbox_id, self.id, "KILL"))

    @verb
    def resize(self, columns: int, rows: int) -> Plan[None]:
        """Its terminal has this size now."""
        size = {"columns": columns, "rows": rows}
        yield from self._caller.done(_verb_of(self.sandbox_id, self.id, "POST", "resize", json=size))

    @verb
    def wait(self, timeout: Optional[Duration] = None) -> Plan[Optional[Exit]]:
        """Waits for its end; `None` if it still runs when the time is over. Does not read its output."""
        left = None if timeout is None else as_seconds("timeout", timeout)
        while True:
            share = LONGEST_WAIT if left is None else min(left, LONGEST_WAIT)
            data = yield from self._caller.json(_verb_of(self.sandbox_id, self.id, "GET", "wait", query={"timeout_seconds": share}))
            if data.get("ended"):
                return self._caller.read(Exit, data["exit"])
            left = None if left is None else left - share
            if left is not None and left <= 0:
                return None

    @verb
    def communicate(
        self, input: Union[None, str, bytes] = None, *, check: bool = False, max_output: Size = MOST_OF_A_RESULT,
    ) -> Plan[Result]:
        """Gives it the rest of its input, if there is some, and gathers what it still writes, to its end."""
        data = input.encode() if isinstance(input, str) else input
        most = as_bytes("max_output", max_output)
        result = yield from gather(self._caller, self.sandbox_id, self.id, self._position, most, data, self._taken)
        return checked(result, check)


class Process(ProcessVerbs, Blocking):
    """A process. Iterate over it for its output; what one loop has read, the next one does not read again."""

    def __init__(self, owner: Blocking, sandbox: str, info: ProcessInfo) -> None:
        self._as(owner)
        self._be(sandbox, info)

    def __iter__(self) -> Iterator[Event]:
        return Stream(self._performer, self._going_on())


class AsyncProcess(ProcessVerbs, Awaiting):
    """A process. Iterate over it for its output; what one loop has read, the next one does not read again."""

    def __init__(self, owner: Awaiting, sandbox: str, info: ProcessInfo) -> None:
        self._as(owner)
        self._be(sandbox, info)

    def __aiter__(self) -> AsyncIterator[Event]:
        return AsyncStream(self._performer, self._going_on())
