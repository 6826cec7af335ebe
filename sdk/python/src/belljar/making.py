"""A sandbox that is asked for: what people write, as the fields of the API. Everything may be left out, and is then the server's default."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Mapping, Optional, Sequence, Union

from .errors import Misuse
from .quantities import Duration, Size, as_bytes, as_millis, whole_seconds
from .request import without_none
from .sandbox_models import VolumeMount

# The name of a profile, or a policy document.
Policy = Union[str, Mapping[str, Any]]
# `VolumeMount(…)`, or as the command line writes it: `data:/mnt/data`, with `:ro` or `:shared` behind it.
Mount = Union[VolumeMount, str]

_MODES = {"": "read-write", "rw": "read-write", "ro": "read-only", "shared": "shared"}


def mount(asked: Mount) -> VolumeMount:
    """A volume in a sandbox."""
    if isinstance(asked, VolumeMount):
        return asked
    volume, _, rest = asked.partition(":")
    path, _, mode = rest.partition(":")
    if not volume or not path.startswith("/") or mode not in _MODES:
        raise Misuse("volumes", "NAME:/path, with :ro or :shared behind it", asked)
    return VolumeMount(volume, path, _MODES[mode])


def seconds_or_none(field: str, time: Optional[Duration]) -> Optional[int]:
    """Whole seconds of a time that may be left out."""
    return None if time is None else whole_seconds(field, time)


def limit_fields(
    cpu: Union[None, float, str], memory: Optional[Size], disk: Optional[Size], pids: Optional[int], wall_time: Optional[Duration],
) -> dict[str, Any]:
    """What it may use."""
    fields = {
        "cpu_millis": None if cpu is None else as_millis("cpu", cpu),
        "memory_bytes": None if memory is None else as_bytes("memory", memory),
        "disk_bytes": None if disk is None else as_bytes("disk", disk),
        "pids": pids,
        "wall_time_seconds": seconds_or_none("wall_time", wall_time),
    }
    named: dict[str, Any] = without_none(fields)
    return named


def create_fields(
    *, template: Optional[str], snapshot: Optional[str], isolation: Optional[str], policy: Optional[Policy], network: Optional[str],
    privilege: Optional[str], limits: Mapping[str, Any], env: Optional[Mapping[str, str]], metadata: Optional[Mapping[str, str]],
    lease_seconds: Optional[int], idle_timeout: Optional[Duration], on_timeout: Optional[str], auto_resume: bool, volumes: Sequence[Mount],
    hostname: Optional[str],
) -> dict[str, Any]:
    """All of it."""
    return {
        "template": template,
        "snapshot": snapshot,
        "isolation": isolation,
        "policy": policy,
        "network": network,
        "privilege": privilege,
        "limits": limits,
        "env": dict(env or {}),
        "metadata": dict(metadata or {}),
        "lease_seconds": lease_seconds,
        "idle_timeout_seconds": seconds_or_none("idle_timeout", idle_timeout),
        "on_timeout": on_timeout,
        "auto_resume": auto_resume,
        "volumes": [asdict(mount(each)) for each in volumes],
        "hostname": hostname,
    }
