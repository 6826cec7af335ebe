"""What both performers share of HTTP: how a connection is set up, and what its failures mean. Here is decided whether a request that failed may have had an
effect: one that never left this machine had none, everything later may have had one.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any, Optional, Union
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from .errors import BelljarError, Misuse, Unreachable
from .request import FileBody, Request
from .settings import Settings

VERSION = "0.1.0"
CONNECT_SECONDS = 10.0
KEEPALIVE_SECONDS = 15
PIECE = 1 << 18
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def client_options(settings: Settings) -> dict[str, Any]:
    """What both of httpx's clients are made with, besides their transport."""
    return {
        "base_url": settings.url,
        # Not `Authorization`: in a request that is passed on to a program in a sandbox, that one is the program's.
        "headers": {"x-api-key": settings.key, "user-agent": f"belljar-python/{VERSION}", "accept-encoding": "identity"},
        "timeout": httpx.Timeout(None, connect=CONNECT_SECONDS),
        "follow_redirects": False,
        # No password of a file in the user's home goes along.
        "trust_env": False,
    }


def transport_options(settings: Settings) -> dict[str, Any]:
    """Of the connections themselves. A server that is gone without a word is found out by the kernel."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), KEEPALIVE_SECONDS))
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=30)
    return {"limits": limits, "socket_options": options, "verify": trust(settings), "proxy": proxy_for(settings), "trust_env": False}


def proxy_for(settings: Settings) -> Optional[str]:
    """What the environment says about the way to this server. A transport that is made by hand is not told by httpx."""
    parts = urlsplit(settings.url)
    if settings.is_local or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return getproxies().get(parts.scheme)


def trust(settings: Settings) -> Union[bool, ssl.SSLContext]:
    """The system's certificates, and those that were given besides."""
    if settings.url.startswith("http://"):
        return False
    context = ssl.create_default_context()
    if settings.ca_file is not None:
        try:
            context.load_verify_locations(cafile=settings.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise Misuse("ca_file", "a file with certificates (PEM)", settings.ca_file) from error
    return context


def sent(http: Union[httpx.Client, httpx.AsyncClient], request: Request, content: Any) -> httpx.Request:
    """The request as httpx knows it."""
    headers = dict(request.headers)
    if isinstance(request.body, FileBody):
        headers["content-length"] = str(request.body.path.stat().st_size)
    timeout = httpx.Timeout(None, connect=CONNECT_SECONDS, read=request.silence)
    # Put together here and not by httpx, whose own way would escape again what is escaped.
    target = request.path + (f"?{httpx.QueryParams(list(request.query))}" if request.query else "")
    return http.build_request(request.method, target, headers=headers, content=content, timeout=timeout)


def failure(settings: Settings, error: httpx.HTTPError, *, answered: bool) -> BelljarError:
    """What a failure of httpx's means."""
    if isinstance(error, NEVER_SENT):
        return Unreachable(settings.url, str(error) or "it cannot be connected to", maybe_done=False)
    if isinstance(error, httpx.ReadTimeout):
        return Unreachable(settings.url, "it said nothing for too long", maybe_done=True)
    where = "it went away in the middle of its answer" if answered else "it went away before it answered"
    detail = f" ({error})" if str(error) else ""
    return Unreachable(settings.url, where + detail, maybe_done=True)
