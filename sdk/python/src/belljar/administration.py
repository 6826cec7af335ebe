"""For whoever runs a server: projects, keys, webhooks, clean-up, and what the server says of itself. Most of it needs the scope `admin`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, List, Mapping, Optional, Sequence

from .making import seconds_or_none
from .model import Model
from .plan import AwaitingGroup, BlockingGroup, Plan, Verbs, verb
from .quantities import Duration, Size, as_bytes, as_millis
from .request import asking, at, without_none
from .sandbox_models import Limits


@dataclass(frozen=True)
class Whoami(Model):
    """Whoever asks."""

    key: str
    project: str
    scopes: list[str]


@dataclass(frozen=True)
class Engine(Model):
    """What the server can isolate with."""

    isolation: str
    version: str
    works: bool


@dataclass(frozen=True)
class ServerInfo(Model):
    """The server."""

    version: str
    engines: list[Engine]
    default_template: str
    default_limits: Limits
    default_lease_seconds: int
    max_lease_seconds: int
    max_sandboxes: int
    auto: dict[str, Any] = field(default_factory=dict[str, Any])
    max_limits: Optional[Limits] = None
    domain: Optional[str] = None


@dataclass(frozen=True)
class Quota(Model):
    """How much a project may have at one time."""

    sandboxes: int
    cpu_millis: int
    memory_bytes: int
    disk_bytes: int


@dataclass(frozen=True)
class Project(Model):
    """A project."""

    id: str
    quota: Quota
    created_at: datetime


@dataclass(frozen=True)
class Key(Model):
    """A key, without its secret."""

    id: str
    project: str
    scopes: list[str]
    label: str
    created_at: datetime
    expires_at: Optional[datetime] = None


@dataclass(frozen=True)
class NewKey(Model):
    """A key that was just made. Its secret is shown this once and kept nowhere."""

    key: Key
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Webhook(Model):
    """An address that is told what happens."""

    id: str
    url: str
    kinds: list[str]
    created_at: datetime
    delivered_at: Optional[datetime] = None
    problem: Optional[str] = None
    waiting: int = 0
    # Only when it was just added: what messages are signed with.
    secret: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class Cleanup(Model):
    """What was, or would be, removed."""

    layers: list[str]
    bytes: int
    dry_run: bool
    orphaned_volumes: list[str] = field(default_factory=list[str])
    orphaned_snapshots: list[str] = field(default_factory=list[str])


def quota_fields(
    sandboxes: Optional[int], cpu: Optional[float], memory: Optional[Size], disk: Optional[Size],
) -> Mapping[str, Any]:
    """A quota; what is left out is the default, or stays."""
    fields: Mapping[str, Any] = without_none({
        "sandboxes": sandboxes,
        "cpu_millis": None if cpu is None else as_millis("cpu", cpu),
        "memory_bytes": None if memory is None else as_bytes("memory", memory),
        "disk_bytes": None if disk is None else as_bytes("disk", disk),
    })
    return fields


class ProjectVerbs(Verbs):
    """What can be done with projects."""

    @verb
    def list(self) -> Plan[List[Project]]:
        """By name."""
        return (yield from self._caller.fetch_all(asking("GET", at("v1", "projects")), Project, "projects"))

    @verb
    def get(self, name: str) -> Plan[Project]:
        """One of them."""
        return (yield from self._caller.fetch(asking("GET", at("v1", "projects", name)), Project))

    @verb
    def add(
        self, name: str, *, sandboxes: Optional[int] = None, cpu: Optional[float] = None, memory: Optional[Size] = None, disk: Optional[Size] = None,
    ) -> Plan[Project]:
        """Makes one."""
        body = {"id": name, "quota": quota_fields(sandboxes, cpu, memory, disk)}
        return (yield from self._caller.fetch(asking("POST", at("v1", "projects"), json=body), Project))

    @verb
    def change(
        self, name: str, *, sandboxes: Optional[int] = None, cpu: Optional[float] = None, memory: Optional[Size] = None, disk: Optional[Size] = None,
    ) -> Plan[Project]:
        """Changes its quota."""
        body = {"quota": quota_fields(sandboxes, cpu, memory, disk)}
        return (yield from self._caller.fetch(asking("PATCH", at("v1", "projects", name), json=body), Project))

    @verb
    def remove(self, name: str) -> Plan[None]:
        """Removes it with all it has."""
        yield from self._caller.done(asking("DELETE", at("v1", "projects", name)))


class Projects(ProjectVerbs, BlockingGroup):
    """Projects."""


class AsyncProjects(ProjectVerbs, AwaitingGroup):
    """Projects."""


class KeyVerbs(Verbs):
    """What can be done with keys."""

    @verb
    def list(self, *, project: Optional[str] = None) -> Plan[List[Key]]:
        """By project."""
        return (yield from self._caller.fetch_all(asking("GET", at("v1", "keys"), query={"project": project}), Key, "keys"))

    @verb
    def add(
        self, project: str, *, scopes: Sequence[str] = ("read", "use"), label: str = "", expires_in: Optional[Duration] = None,
    ) -> Plan[NewKey]:
        """Makes one. Its `secret` is in this answer and nowhere else."""
        body = {"project": project, "scopes": list(scopes), "label": label, "expires_in_seconds": seconds_or_none("expires_in", expires_in)}
        return (yield from self._caller.fetch(asking("POST", at("v1", "keys"), json=body), NewKey))

    @verb
    def remove(self, id: str) -> Plan[None]:
        """It is refused from now on."""
        yield from self._caller.done(asking("DELETE", at("v1", "keys", id)))


class Keys(KeyVerbs, BlockingGroup):
    """Keys."""


class AsyncKeys(KeyVerbs, AwaitingGroup):
    """Keys."""


class WebhookVerbs(Verbs):
    """What can be done with webhooks."""

    @verb
    def list(self) -> Plan[List[Webhook]]:
        """Oldest first."""
        return (yield from self._caller.fetch_all(asking("GET", at("v1", "webhooks")), Webhook, "webhooks"))

    @verb
    def add(self, url: str, *, kinds: Sequence[str] = ()) -> Plan[Webhook]:
        """Adds one, told of these kinds or of everything. Its `secret` is in this answer and nowhere else."""
        request = asking("POST", at("v1", "webhooks"), json={"url": url, "kinds": list(kinds)})
        return (yield from self._caller.fetch(request, Webhook))

    @verb
    def remove(self, id: str) -> Plan[None]:
        """It is told nothing more."""
        yield from self._caller.done(asking("DELETE", at("v1", "webhooks", id)))


class Webhooks(WebhookVerbs, BlockingGroup):
    """Webhooks."""


class AsyncWebhooks(WebhookVerbs, AwaitingGroup):
    """Webhooks."""
