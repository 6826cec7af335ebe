"""The client of one server: sandboxes, and everything else that the server keeps. `Belljar` blocks, `AsyncBelljar` awaits; all else is the same."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any, Generic, Mapping, Optional, Sequence, TypeVar, Union

from .administration import AsyncKeys, AsyncProjects, AsyncWebhooks, Cleanup, Keys, Projects, ServerInfo, Webhooks, Whoami
from .artifacts import Artifacts, AsyncArtifacts
from .asking import Caller
from .audit import AsyncAudit, Audit
from .awaiting import AwaitingPerformer
from .blocking import BlockingPerformer
from .errors import BelljarError, Misuse, refusal
from .lease import Leases
from .making import Mount, Policy, create_fields, limit_fields
from .metering import AsyncBudgets, Budgets, UsageReport
from .plan import Awaiting, Blocking, Feed, Plan, Verbs, opening, stream, verb
from .quantities import Duration, Size
from .request import Answer, Query, asking, at
from .sandbox_models import SandboxInfo
from .sandboxes import AsyncSandbox, Sandbox, fork_fields, lease_of
from .settings import Settings
from .snapshots import AsyncSnapshots, Snapshots
from .templates import AsyncTemplates, Templates
from .volumes import AsyncVolumes, Volumes

S = TypeVar("S")
DEFAULT_PATIENCE = 60.0


class ClientVerbs(Verbs, Generic[S]):
    """What can be asked of a server."""

    _leases: Leases

    def _sandbox(self, info: SandboxInfo, held_for: Optional[int]) -> S:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._caller.url!r})"

    @property
    def url(self) -> str:
        """The server's address."""
        return self._caller.url

    @opening
    def create(
        self, *, template: Optional[str] = None, snapshot: Optional[str] = None, isolation: Optional[str] = None, policy: Optional[Policy] = None,
        network: Optional[str] = None, privilege: Optional[str] = None, cpu: Union[None, float, str] = None, memory: Optional[Size] = None,
        disk: Optional[Size] = None, pids: Optional[int] = None, wall_time: Optional[Duration] = None, env: Optional[Mapping[str, str]] = None,
        metadata: Optional[Mapping[str, str]] = None, lease: Optional[Duration] = None, idle_timeout: Optional[Duration] = None,
        on_timeout: Optional[str] = None, auto_resume: bool = False, volumes: Sequence[Mount] = (), hostname: Optional[str] = None,
        keep: bool = False, idempotency_key: Optional[str] = None,
    ) -> Plan[S]:
        """Makes a sandbox, and returns when it can be used.

        It is held: its lease (two minutes unless said otherwise) is renewed as long as this object is in use, and leaving its `with` ends it; if this program
        dies, the lease runs out and ends it. With `keep=True` it stays, for the server's default lease or for `lease`: `open(id)` finds it again.

        `isolation` is a class or `"auto"`, `policy` the name of a profile or a document, `cpu` a number of cores. What cannot be enforced is an error.
        """
        seconds = lease_of(lease, keep)
        fields = create_fields(
            template=template, snapshot=snapshot, isolation=isolation, policy=policy, network=network, privilege=privilege,
            limits=limit_fields(cpu, memory, disk, pids, wall_time), env=env, metadata=metadata, lease_seconds=seconds, idle_timeout=idle_timeout,
            on_timeout=on_timeout, auto_resume=auto_resume, volumes=volumes, hostname=hostname,
        )
        # However often this is sent, it is one sandbox.
        headers = {"idempotency-key": idempotency_key or secrets.token_hex(16)}
        info = yield from self._caller.fetch(asking("POST", at("v1", "sandboxes"), json=fields, headers=headers, repeatable=True), SandboxInfo)
        return self._sandbox(info, None if keep else seconds)

    @opening
    def open(self, id: str) -> Plan[S]:
        """A sandbox that is there. It is not held: leaving it changes nothing."""
        info = yield from self._caller.fetch(asking("GET", at("v1", "sandboxes", id)), SandboxInfo)
        return self._sandbox(info, None)

    @stream
    def list(
        self, *, state: Union[None, str, Sequence[str]] = None, metadata: Optional[Mapping[str, str]] = None, template: Optional[str] = None,
        oldest_first: bool = False,
    ) -> Feed[SandboxInfo]:
        """The project's sandboxes, ended ones too, newest first; only those in this state, with all of this metadata, from this template."""
        query: Query = {
            "state": state,
            "metadata": [f"{name}:{value}" for name, value in (metadata or {}).items()],
            "template": template,
            "order": "oldest" if oldest_first else None,
        }
        yield from self._caller.pages(at("v1", "sandboxes"), query, SandboxInfo, "sandboxes")

    @verb
    def fork_snapshot(
        self, snapshot: str, count: int = 1, *, env: Optional[Mapping[str, str]] = None, metadata: Optional[Mapping[str, str]] = None,
        lease: Optional[Duration] = None, idle_timeout: Optional[Duration] = None, keep: bool = False,
    ) -> Plan[tuple[S, ...]]:
        """Sandboxes from a snapshot, by its id or name: all of them or none."""
        seconds = lease_of(lease, keep)
        body = fork_fields(count, True, env, metadata, seconds, idle_timeout)
        data = yield from self._caller.json(asking("POST", at("v1", "snapshots", snapshot, "forks"), json=body))
        failed = next((each["error"] for each in data["forks"] if each.get("sandbox") is None), None)
        if failed is not None:
            raise refusal(failed)
        infos = [self._caller.read(SandboxInfo, each["sandbox"]) for each in data["forks"]]
        return tuple(self._sandbox(info, None if keep else seconds) for info in infos)

    @verb
    def whoami(self) -> Plan[Whoami]:
        """Who asks, for whom, and what they may."""
        return (yield from self._caller.fetch(asking("GET", at("v1", "whoami")), Whoami))

    @verb
    def server(self) -> Plan[ServerInfo]:
        """What the server can do, and its defaults."""
        return (yield from self._caller.fetch(asking("GET", at("v1", "server")), ServerInfo))

    @verb
    def is_ready(self) -> Plan[bool]:
        """Whether the server can do work now."""
        try:
            yield from self._caller.once(asking("GET", at("readyz"), silence=30.0))
            return True
        except BelljarError:
            return False

    @verb
    def usage(self, subject: Optional[str] = None, *, since: Optional[str] = None) -> Plan[UsageReport]:
        """What sandboxes used: those of the project, or of `project:NAME`, `key:ID` or `sandbox:ID`."""
        return (yield from self._caller.fetch(asking("GET", at("v1", "usage"), query={"subject": subject, "since": since}), UsageReport))

    @verb
    def usage_csv(self, subject: Optional[str] = None, *, since: Optional[str] = None) -> Plan[str]:
        """The same as a table."""
        answer = yield from self._caller.ask(asking("GET", at("v1", "usage"), query={"subject": subject, "since": since, "format": "csv"}))
        return answer.body.decode()

    @verb
    def collect_garbage(self, *, dry_run: bool = False, orphans: bool = False) -> Plan[Cleanup]:
        """Removes layers that nothing refers to, and with `orphans` volumes and snapshots that the server's store does not know."""
        request = asking("POST", at("v1", "gc"), json={"dry_run": dry_run, "orphans": orphans})
        return (yield from self._caller.fetch(request, Cleanup))

    @verb
    def request(
        self, method: str, path: str, *, json: Any = None, query: Optional[Query] = None, headers: Optional[Mapping[str, str]] = None,
        body: Optional[bytes] = None, repeatable: bool = False,
    ) -> Plan[Answer]:
        """Anything of the API that has no method here. A refusal is the same error as everywhere; `repeatable` says that it may be sent twice."""
        if not path.startswith("/"):
            # The key goes to this server and to no other.
            raise Misuse("path", "a path on this server, which begins with /", path)
        request = asking(method, path, json=json, query=query, headers=headers, body=body, repeatable=repeatable)
        return (yield from self._caller.ask(request))


class Belljar(ClientVerbs[Sandbox], Blocking):
    """A client that blocks. Threads may share it."""

    def __init__(
        self, url: Optional[str] = None, api_key: Optional[str] = None, *, ca_file: Union[None, str, Path] = None,
        patience: Duration = DEFAULT_PATIENCE,
    ) -> None:
        """What is left out comes from BELLJAR_URL, BELLJAR_API_KEY and BELLJAR_CA_FILE. `patience`: how long a server that was there is waited for."""
        settings = Settings.gather(url, api_key, ca_file, patience)
        self._caller, self._performer = Caller(settings), BlockingPerformer(settings)
        self._leases = Leases(self._caller, self._performer)
        self.snapshots = Snapshots(self)
        self.volumes = Volumes(self)
        self.templates = Templates(self)
        self.artifacts = Artifacts(self)
        self.audit = Audit(self)
        self.budgets = Budgets(self)
        self.projects = Projects(self)
        self.keys = Keys(self)
        self.webhooks = Webhooks(self)

    def _sandbox(self, info: SandboxInfo, held_for: Optional[int]) -> Sandbox:
        return Sandbox(self, self._leases, info, held_for)

    def close(self) -> None:
        """Closes its connections. Sandboxes that are held are not renewed after this."""
        self._leases.let_go_of_all()
        self._performer.close()

    def __enter__(self) -> Belljar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncBelljar(ClientVerbs[AsyncSandbox], Awaiting):
    """A client for asyncio, for one event loop."""

    def __init__(
        self, url: Optional[str] = None, api_key: Optional[str] = None, *, ca_file: Union[None, str, Path] = None,
        patience: Duration = DEFAULT_PATIENCE,
    ) -> None:
        """What is left out comes from BELLJAR_URL, BELLJAR_API_KEY and BELLJAR_CA_FILE. `patience`: how long a server that was there is waited for."""
        settings = Settings.gather(url, api_key, ca_file, patience)
        self._caller, self._performer = Caller(settings), AwaitingPerformer(settings)
        self._leases = Leases(self._caller, self._performer)
        self.snapshots = AsyncSnapshots(self)
        self.volumes = AsyncVolumes(self)
        self.templates = AsyncTemplates(self)
        self.artifacts = AsyncArtifacts(self)
        self.audit = AsyncAudit(self)
        self.budgets = AsyncBudgets(self)
        self.projects = AsyncProjects(self)
        self.keys = AsyncKeys(self)
        self.webhooks = AsyncWebhooks(self)

    def _sandbox(self, info: SandboxInfo, held_for: Optional[int]) -> AsyncSandbox:
        return AsyncSandbox(self, self._leases, info, held_for)

    async def close(self) -> None:
        """Closes its connections. Sandboxes that are held are not renewed after this."""
        self._leases.let_go_of_all()
        await self._performer.close()

    async def __aenter__(self) -> AsyncBelljar:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
