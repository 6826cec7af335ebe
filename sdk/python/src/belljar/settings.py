"""Which server is asked, for whom, and how long a lost one is waited for. Arguments win over the variables that `belljar env` sets."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional, Union
from urllib.parse import urlsplit

from .errors import Misuse, NotConfigured
from .quantities import Duration, as_seconds

DEFAULT_URL = "http://127.0.0.1:7070"


@dataclass(frozen=True)
class Settings:
    """All of it, checked."""

    url: str
    key: str = field(repr=False)
    ca_file: Optional[str] = None
    patience: float = 60.0

    @classmethod
    def gather(
        cls, url: Optional[str], key: Optional[str], ca_file: Union[str, Path, None], patience: Duration,
    ) -> Settings:
        """From arguments, or else from BELLJAR_URL, BELLJAR_API_KEY and BELLJAR_CA_FILE."""
        url = (url or os.environ.get("BELLJAR_URL") or DEFAULT_URL).rstrip("/")
        key = (key or os.environ.get("BELLJAR_API_KEY") or "").strip()
        ca_file = ca_file or os.environ.get("BELLJAR_CA_FILE") or None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Misuse("url", f"an address such as {DEFAULT_URL}", url)
        if not key:
            raise NotConfigured('there is no API key: on the server\'s machine, run: eval "$(belljar env)"; elsewhere set BELLJAR_URL and BELLJAR_API_KEY')
        if not key.isascii() or not key.isprintable():
            raise NotConfigured("the API key is not text that can be sent; look at BELLJAR_API_KEY")
        if ca_file is not None and not Path(ca_file).is_file():
            raise Misuse("ca_file", "a file with certificates (PEM)", str(ca_file))
        return cls(url=url, key=key, ca_file=None if ca_file is None else str(ca_file), patience=as_seconds("patience", patience))

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine: a proxy for the world outside has no business there."""
        host = urlsplit(self.url).hostname or ""
        return host in ("localhost", "::1") or host.startswith("127.")
