"""Files that were taken out of sandboxes to be kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Optional

from .model import Model


@dataclass(frozen=True)
class ArtifactInfo(Model):
    """A file that was kept."""

    id: str
    name: str
    sandbox: str
    path: str
    bytes: int
    sha256: str
    media_type: str
    created_at: datetime
    expires_at: Optional[datetime] = None
