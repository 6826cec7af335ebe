"""Files in a sandbox or a volume, as the server tells them. Names are the sandbox's word: where they are not UTF-8, `path_bytes` has them as they are."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import Optional

from .model import Model


@dataclass(frozen=True)
class FileInfo(Model):
    """What a path is."""

    path: str
    # `file`, `directory`, `symlink` or `other`.
    kind: str
    size: int
    # Permissions in octal.
    mode: str
    uid: int
    gid: int
    modified_at: datetime
    owner: Optional[str] = None
    group: Optional[str] = None
    symlink_target: Optional[str] = None
    path_base64: Optional[str] = None
    symlink_target_base64: Optional[str] = None

    @property
    def path_bytes(self) -> bytes:
        """The path as it is."""
        return base64.b64decode(self.path_base64) if self.path_base64 is not None else self.path.encode()

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.kind == "file"

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.kind == "directory"


@dataclass(frozen=True)
class Change(Model):
    """Something that happened below a watched directory."""

    # `created`, `written`, `attributes`, `removed`, `renamed`, or `overflowed`: so much happened that some of it was not noticed.
    kind: str
    # Where, from the watched directory on.
    name: str
    name_base64: Optional[str] = None


@dataclass(frozen=True)
class Hit(Model):
    """Something that was found."""

    path: str
    # The line in the file, if its content was searched.
    line: Optional[int] = None
    text: str = ""
    path_base64: Optional[str] = None
