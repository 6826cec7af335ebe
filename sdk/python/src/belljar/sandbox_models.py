"""Sandboxes and snapshots as the server tells them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Optional

from .model import Model


@dataclass(frozen=True)
class Limits(Model):
    """What a sandbox may use."""

    # Thousandths of a core.
    cpu_millis: int
    memory_bytes: int
    # Beyond the template.
    disk_bytes: int
    pids: int
    wall_time_seconds: Optional[int] = None


@dataclass(frozen=True)
class Pause(Model):
    """How a sandbox stands still."""

    since: datetime
    # `on-disk`, `resident` in the host's memory, or `lost`: then it boots anew.
    memory: str


@dataclass(frozen=True)
class Origin(Model):
    """Whom a sandbox is a copy of."""

    sandbox: str
    snapshot: Optional[str] = None


@dataclass(frozen=True)
class End(Model):
    """How a sandbox ended or is ending: `requested`, `lease-expired`, `idle` …"""

    cause: str
    detail: str
    at: datetime


@dataclass(frozen=True)
class VolumeMount(Model):
    """Storage that outlives a sandbox, at a directory in it: `read-write` (alone), `read-only` or `shared`."""

    volume: str
    path: str
    mode: str = "read-write"


@dataclass(frozen=True)
class SandboxInfo(Model):
    """A sandbox."""

    id: str
    project: str
    # `creating`, `running`, `pausing`, `paused`, `resuming`, `stopping`, `stopped` or `failed`.
    state: str
    isolation: str
    isolation_reason: str
    template: str
    execution: str
    limits: Limits
    network: str
    privilege: str
    created_at: datetime
    # Names only; values stay inside.
    env: list[str] = field(default_factory=list[str])
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    volumes: list[VolumeMount] = field(default_factory=list[VolumeMount])
    policy: Optional[dict[str, Any]] = None
    hostname: Optional[str] = None
    started_at: Optional[datetime] = None
    expires_at: Optional[datetime] = None
    idle_timeout_seconds: Optional[int] = None
    on_timeout: str = "kill"
    auto_resume: bool = False
    pause: Optional[Pause] = None
    origin: Optional[Origin] = None
    end: Optional[End] = None

    @property
    def is_running(self) -> bool:
        """Whether it can be used."""
        return self.state == "running"

    @property
    def has_ended(self) -> bool:
        """Whether it is no more."""
        return self.state in ("stopped", "failed")


@dataclass(frozen=True)
class Usage(Model):
    """What a sandbox used, as the host counts it."""

    cpu_micros: int
    memory_bytes: int
    memory_peak_bytes: int
    disk_bytes: int
    pids: int
    oom_kills: int


@dataclass(frozen=True)
class GuestMetrics(Model):
    """What a sandbox looks like from inside. For people and dashboards: the sandbox could lie."""

    cpus: int
    cpu_micros: int
    memory_total_bytes: int
    memory_used_bytes: int
    disk_total_bytes: int
    disk_used_bytes: int
    processes: int


@dataclass(frozen=True)
class SnapshotInfo(Model):
    """A snapshot."""

    id: str
    project: str
    # `memory`: what is made from it goes on. `filesystem`: it boots anew.
    kind: str
    isolation: str
    sandbox: str
    template: str
    limits: Limits
    bytes: int
    stood_still_micros: int
    created_at: datetime
    name: Optional[str] = None
    parent: Optional[str] = None
    expires_at: Optional[datetime] = None


@dataclass(frozen=True)
class Tree(Model):
    """Everything that came from one sandbox."""

    root: str
    sandboxes: list[SandboxInfo]
    snapshots: list[SnapshotInfo]


@dataclass(frozen=True)
class PortInfo(Model):
    """A port that a program inside listens on."""

    port: int
    address: str
    pid: Optional[int] = None


@dataclass(frozen=True)
class PortToken(Model):
    """Permission to reach one port."""

    token: str = field(repr=False)
    expires_at: datetime
    host: Optional[str] = None


@dataclass(frozen=True)
class Recording(Model):
    """A recorded terminal."""

    process: str
    began_at: datetime
    bytes: int
