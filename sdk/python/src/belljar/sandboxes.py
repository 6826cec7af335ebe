"""A sandbox: run things in it, look into it, stop it where it stands, copy it, end it.

One that was made for the time being (`create` without `keep`) is held: its lease is short and renewed, and it ends with the `with` that it was made for. One
that was opened by its id is only looked at: leaving it changes nothing.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Generic, Mapping, Optional, Sequence, TypeVar, Union

from .artifact_models import ArtifactInfo
from .errors import BelljarError, Ended, Misuse, NotFound, refusal
from .files import AsyncFiles, Files
from .interpreter import AsyncInterpreter, Interpreter
from .lease import SHORT_LEASE, Leases, lease_request
from .making import Policy, seconds_or_none
from .plan import Awaiting, Blocking, Plan, Sleep, Verbs, verb
from .ports import AsyncPort, Port
from .process_models import ProcessInfo, Result
from .processes import KEPT_ATTACHED, KEPT_DETACHED, MOST_OF_A_RESULT, AsyncProcess, Command, Listener, Process, Terminal
from .processes import checked, run_cleaned, run_to_the_end, start_fields, start_request
from .quantities import Duration, Size, as_bytes, as_seconds, whole_seconds
from .request import NULL, GuestPath, asking, at, path_fields
from .sandbox_models import GuestMetrics, PortInfo, PortToken, Recording, SandboxInfo, SnapshotInfo, Tree, Usage

S = TypeVar("S")
Pr = TypeVar("Pr")
Po = TypeVar("Po")

UNCHANGED = "unchanged"
LOOK_AGAIN = 0.1


def fork_fields(
    count: int, all_or_nothing: bool, env: Optional[Mapping[str, str]], metadata: Optional[Mapping[str, str]], lease_seconds: Optional[int],
    idle_timeout: Optional[Duration],
) -> dict[str, Any]:
    """Copies to make."""
    return {
        "count": count,
        "all_or_nothing": all_or_nothing,
        "env": dict(env or {}),
        "metadata": None if metadata is None else dict(metadata),
        "lease_seconds": lease_seconds,
        "idle_timeout_seconds": seconds_or_none("idle_timeout", idle_timeout),
    }


def lease_of(lease: Optional[Duration], keep: bool) -> Optional[int]:
    """How long it is to live: short if it is held, else as the server has it."""
    if lease is not None:
        return whole_seconds("lease", lease)
    return None if keep else SHORT_LEASE


class SandboxVerbs(Verbs, Generic[S, Pr, Po]):
    """What can be done with a sandbox."""

    info: SandboxInfo
    _leases: Leases
    _held_for: Optional[int]

    def _be(self, leases: Leases, info: SandboxInfo, held_for: Optional[int]) -> None:
        self._leases, self.info, self._held_for = leases, info, held_for
        if held_for is not None:
            leases.hold(info.id, self, held_for)

    def _another(self, info: SandboxInfo, held_for: Optional[int]) -> S:
        raise NotImplementedError

    def _process(self, info: ProcessInfo) -> Pr:
        raise NotImplementedError

    def _port(self, number: int, permission: PortToken) -> Po:
        raise NotImplementedError

    @property
    def id(self) -> str:
        """Its name for life: `client.open(id)` finds it again, from anywhere."""
        return self.info.id

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r}, state={self.info.state!r}, isolation={self.info.isolation!r}, template={self.info.template!r})"

    def _at(self, *pieces: object) -> str:
        return at("v1", "sandboxes", self.id, *pieces)

    def _told(self, method: str, path: str, **more: Any) -> Plan[SandboxInfo]:
        self.info = yield from self._caller.fetch(asking(method, path, **more), SandboxInfo)
        return self.info

    # Running things

    @verb
    def run(
        self, command: Command, *, input: Union[None, str, bytes] = None, env: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None,
        user: Optional[str] = None, timeout: Optional[Duration] = None, check: bool = False, max_output: Size = MOST_OF_A_RESULT,
        on_output: Optional[Listener] = None, escapes: Optional[str] = None, mask: Sequence[str] = (),
    ) -> Plan[Result]:
        """Runs a command to its end: a line for the shell, or a list of words.

        A restart of the server does not disturb it. Of each stream the first and the last half of `max_output` are kept, and the result says what is missing.
        `on_output` is called with each piece as it comes. With `escapes` (`"strip"` or `"show"`) or `mask` the server takes terminal escapes and the given values out of the output; then the command ends with
        the connection. `timeout` ends the command, and the result says so; `check` makes an error of a bad end.
        """
        data = input.encode() if isinstance(input, str) else input
        fields = start_fields(
            command, env=env, cwd=cwd, user=user, stdin=data is not None, pty=None, timeout=timeout, spool=(KEPT_ATTACHED, "slow"),
        )
        most = as_bytes("max_output", max_output)
        if escapes is not None or mask:
            if on_output is not None:
                raise Misuse("on_output", "nothing, because cleaned output comes at the end", on_output)
            result = yield from run_cleaned(self._caller, self.id, fields, data, most, escapes, mask)
        else:
            result = yield from run_to_the_end(self._caller, self.id, fields, data, most, on_output)
        return checked(result, check)

    @verb
    def start(
        self, command: Command, *, stdin: bool = False, pty: Optional[Terminal] = None, env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None, user: Optional[str] = None, timeout: Optional[Duration] = None, keep: Size = KEPT_DETACHED,
        overflow: str = "drop-oldest", tag: Optional[str] = None, id: Optional[str] = None,
    ) -> Plan[Pr]:
        """Starts a process and leaves it running: iterate over it for its output, now or later.

        `keep` bytes of each stream are kept until they are read. Beyond that the oldest go, and a `Gap` says which; with `overflow="slow"` the process waits
        for its readers instead, and with `"kill"` it ends. `pty=(columns, rows)` gives it a terminal.
        """
        fields = start_fields(
            command, env=env, cwd=cwd, user=user, stdin=stdin or pty is not None, pty=pty, timeout=timeout,
            spool=(as_bytes("keep", keep), overflow), tag=tag, id=id,
        )
        info = yield from self._caller.fetch(start_request(self.id, fields), ProcessInfo)
        return self._process(info)

    @verb
    def process(self, id: str) -> Plan[Pr]:
        """A process that was started before, here or elsewhere."""
        info = yield from self._caller.fetch(asking("GET", self._at("processes", id)), ProcessInfo)
        return self._process(info)

    @verb
    def processes(self) -> Plan[list[Pr]]:
        """Those that were started through the API and are still known."""
        infos = yield from self._caller.fetch_all(asking("GET", self._at("processes")), ProcessInfo, "processes")
        return [self._process(info) for info in infos]

    # Ports

    @verb
    def ports(self) -> Plan[list[PortInfo]]:
        """What programs inside listen on."""
        return (yield from self._caller.fetch_all(asking("GET", self._at("ports")), PortInfo, "ports"))

    @verb
    def port(self, number: int, *, expires_in: Duration = 3600, wait: Duration = 0) -> Plan[Po]:
        """A port of a program inside: its `url`, and a `token` for others. With `wait`, it is waited for so long until something listens there."""
        left = as_seconds("wait", wait)
        while left > 0:
            listening = yield from self._caller.fetch_all(asking("GET", self._at("ports")), PortInfo, "ports")
            if any(each.port == number for each in listening):
                break
            yield Sleep(LOOK_AGAIN)
            left -= LOOK_AGAIN
            if left <= 0:
                raise refusal({"code": "port_closed", "status": 502, "detail": f"nothing listens on port {number} after {as_seconds('wait', wait):g} s"})
        body = {"expires_in_seconds": whole_seconds("expires_in", expires_in)}
        token = yield from self._caller.fetch(asking("POST", self._at("ports", number, "token"), json=body, repeatable=True), PortToken)
        return self._port(number, token)

    # Life

    @verb
    def refresh(self) -> Plan[SandboxInfo]:
        """Asks how it is now."""
        return (yield from self._told("GET", self._at()))

    @verb
    def lease(self, time: Duration, *, at_least: bool = False) -> Plan[SandboxInfo]:
        """It ends so long from now; with `at_least`, never sooner than it would have."""
        self.info = yield from self._caller.fetch(lease_request(self.id, whole_seconds("time", time), at_least), SandboxInfo)
        return self.info

    @verb
    def change(
        self, *, metadata: Optional[Mapping[str, str]] = None, idle_timeout: Union[None, Duration] = UNCHANGED, lease: Optional[Duration] = None,
        policy: Optional[Policy] = None,
    ) -> Plan[SandboxInfo]:
        """Changes these together or not at all. `metadata` replaces all; `idle_timeout=None` removes it; connections that a new policy refuses are cut."""
        idle: Any = None if idle_timeout == UNCHANGED else NULL if idle_timeout is None else whole_seconds("idle_timeout", idle_timeout)
        body = {
            "metadata": None if metadata is None else dict(metadata),
            "idle_timeout_seconds": idle,
            "lease_seconds": seconds_or_none("lease", lease),
            "policy": policy,
        }
        return (yield from self._told("PATCH", self._at(), json=body))

    @verb
    def pause(self, keep: str = "memory") -> Plan[SandboxInfo]:
        """Stops it where it stands: with its `memory`, on `standby` (in the host's memory), or its `filesystem` only."""
        return (yield from self._told("POST", self._at("pause"), json={"keep": keep}))

    @verb
    def resume(self, *, lease: Optional[Duration] = None) -> Plan[SandboxInfo]:
        """Lets it go on."""
        return (yield from self._told("POST", self._at("resume"), json={"lease_seconds": seconds_or_none("lease", lease)}))

    @verb
    def kill(self) -> Plan[SandboxInfo]:
        """Ends it. Nothing of it is left."""
        self._leases.let_go(self.id)
        return (yield from self._told("DELETE", self._at(), repeatable=True))

    def _leave(self, has_failed: bool) -> Plan[None]:
        """The end of a `with`. What went wrong before says more than that it could not be ended."""
        self._leases.let_go(self.id)
        if self._held_for is None or self.info.has_ended:
            return
        try:
            yield from self._told("DELETE", self._at(), repeatable=True)
        except (Ended, NotFound):
            pass
        except BelljarError:
            if not has_failed:
                raise

    # State

    @verb
    def snapshot(self, name: Optional[str] = None, *, kind: Optional[str] = None, expires_in: Optional[Duration] = None) -> Plan[SnapshotInfo]:
        """Keeps its state. `kind` is `memory` or `filesystem`; with memory when left out, where its class can."""
        body = {"name": name, "kind": kind, "expires_in_seconds": seconds_or_none("expires_in", expires_in)}
        return (yield from self._caller.fetch(asking("POST", self._at("snapshots"), json=body), SnapshotInfo))

    @verb
    def rollback(self, snapshot: Union[str, SnapshotInfo]) -> Plan[SandboxInfo]:
        """Goes back to one of its own snapshots, as if nothing had happened since."""
        which = snapshot if isinstance(snapshot, str) else snapshot.id
        return (yield from self._told("POST", self._at("rollback"), json={"snapshot": which}))

    @verb
    def fork(
        self, count: int = 1, *, env: Optional[Mapping[str, str]] = None, metadata: Optional[Mapping[str, str]] = None,
        lease: Optional[Duration] = None, idle_timeout: Optional[Duration] = None, keep: bool = False,
    ) -> Plan[list[S]]:
        """Copies that run: all of them or none. They are held as with `create`, unless they are to stay (`keep`)."""
        made = yield from self._forks(count, True, env, metadata, lease, idle_timeout, keep)
        return [each for each in made if not isinstance(each, BelljarError)]

    @verb
    def fork_some(
        self, count: int, *, env: Optional[Mapping[str, str]] = None, metadata: Optional[Mapping[str, str]] = None,
        lease: Optional[Duration] = None, idle_timeout: Optional[Duration] = None, keep: bool = False,
    ) -> Plan[list[Union[S, BelljarError]]]:
        """Copies of which each is made or fails by itself; where one failed, there is the error instead."""
        return (yield from self._forks(count, False, env, metadata, lease, idle_timeout, keep))

    def _forks(
        self, count: int, all_or_nothing: bool, env: Optional[Mapping[str, str]], metadata: Optional[Mapping[str, str]],
        lease: Optional[Duration], idle_timeout: Optional[Duration], keep: bool,
    ) -> Plan[list[Union[S, BelljarError]]]:
        seconds = lease_of(lease, keep)
        body = fork_fields(count, all_or_nothing, env, metadata, seconds, idle_timeout)
        data = yield from self._caller.json(asking("POST", self._at("forks"), json=body))
        return [self._fork_of(each, None if keep else seconds) for each in data["forks"]]

    def _fork_of(self, entry: Mapping[str, Any], held_for: Optional[int]) -> Union[S, BelljarError]:
        if entry.get("sandbox") is None:
            return refusal(entry.get("error") or {})
        return self._another(self._caller.read(SandboxInfo, entry["sandbox"]), held_for)

    @verb
    def tree(self) -> Plan[Tree]:
        """Everything that came from it, or that it came from."""
        return (yield from self._caller.fetch(asking("GET", self._at("tree")), Tree))

    @verb
    def keep_file(
        self, path: GuestPath, *, name: Optional[str] = None, media_type: Optional[str] = None, expires_in: Optional[Duration] = None,
        user: Optional[str] = None,
    ) -> Plan[ArtifactInfo]:
        """Keeps a file beyond its end, as an artifact."""
        if isinstance(path, bytes):
            raise Misuse("path", "a path that is text", path)
        body = {
            **path_fields(path), "name": name, "media_type": media_type, "expires_in_seconds": seconds_or_none("expires_in", expires_in), "user": user,
        }
        return (yield from self._caller.fetch(asking("POST", self._at("artifacts"), json=body), ArtifactInfo))

    # Looking at it

    @verb
    def usage(self) -> Plan[Usage]:
        """What it used, as the host counts it."""
        return (yield from self._caller.fetch(asking("GET", self._at("usage")), Usage))

    @verb
    def metrics(self) -> Plan[GuestMetrics]:
        """How it looks from inside."""
        return (yield from self._caller.fetch(asking("GET", self._at("metrics")), GuestMetrics))

    @verb
    def recordings(self) -> Plan[list[Recording]]:
        """Its recorded terminals, oldest first."""
        return (yield from self._caller.fetch_all(asking("GET", self._at("recordings")), Recording, "recordings"))

    @verb
    def recording(self, process: str) -> Plan[bytes]:
        """A recorded terminal, as asciicast."""
        answer = yield from self._caller.ask(asking("GET", self._at("recordings", process)))
        return answer.body


class Sandbox(SandboxVerbs["Sandbox", Process, Port], Blocking):
    """A sandbox."""

    def __init__(self, owner: Blocking, leases: Leases, info: SandboxInfo, held_for: Optional[int]) -> None:
        self._as(owner)
        self._be(leases, info, held_for)

    @property
    def files(self) -> Files:
        """Its files."""
        return Files(self, self.id)

    @property
    def code(self) -> Interpreter:
        """Runs code that keeps its state: `sandbox.code("python", "1 + 1")`."""
        return Interpreter(self, self.id)

    def _another(self, info: SandboxInfo, held_for: Optional[int]) -> Sandbox:
        return Sandbox(self, self._leases, info, held_for)

    def _process(self, info: ProcessInfo) -> Process:
        return Process(self, self.id, info)

    def _port(self, number: int, permission: PortToken) -> Port:
        return Port(self, self.id, number, permission)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._performer.run(self._leave(error is not None))


class AsyncSandbox(SandboxVerbs["AsyncSandbox", AsyncProcess, AsyncPort], Awaiting):
    """A sandbox."""

    def __init__(self, owner: Awaiting, leases: Leases, info: SandboxInfo, held_for: Optional[int]) -> None:
        self._as(owner)
        self._be(leases, info, held_for)

    @property
    def files(self) -> AsyncFiles:
        """Its files."""
        return AsyncFiles(self, self.id)

    @property
    def code(self) -> AsyncInterpreter:
        """Runs code that keeps its state: `sandbox.code("python", "1 + 1")`."""
        return AsyncInterpreter(self, self.id)

    def _another(self, info: SandboxInfo, held_for: Optional[int]) -> AsyncSandbox:
        return AsyncSandbox(self, self._leases, info, held_for)

    def _process(self, info: ProcessInfo) -> AsyncProcess:
        return AsyncProcess(self, self.id, info)

    def _port(self, number: int, permission: PortToken) -> AsyncPort:
        return AsyncPort(self, self.id, number, permission)

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self._performer.run(self._leave(error is not None))
