"""Programs that listen in a sandbox: how they are reached from outside, and who else may."""

from __future__ import annotations

from typing import Mapping, Optional
from urllib.parse import unquote

from .errors import Misuse
from .plan import Awaiting, Blocking, Plan, Send, Verbs, verb
from .request import Answer, Request, at
from .sandbox_models import PortToken

KEY_HEADER = "x-api-key"
TOKEN_HEADER = "x-belljar-token"


class PortVerbs(Verbs):
    """One port of a sandbox."""

    sandbox_id: str
    number: int
    permission: PortToken

    def _be(self, sandbox: str, number: int, permission: PortToken) -> None:
        self.sandbox_id, self.number, self.permission = sandbox, number, permission

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def token(self) -> str:
        """Lets others reach this port, under its host name, until `permission.expires_at`."""
        return self.permission.token

    @property
    def url(self) -> str:
        """Its address: its own host name if the server has a domain, else a path of the server's. A program that makes links from the root needs the former."""
        if self.permission.host is None:
            return self._caller.url + self._path()
        scheme, _, rest = self._caller.url.partition("://")
        port = rest.partition("/")[0].rpartition(":")[2]
        return f"{scheme}://{self.permission.host}{f':{port}' if port.isdigit() else ''}/"

    @property
    def link(self) -> str:
        """An address that a browser opens as it is. It holds the token: whoever has it is let in."""
        if self.permission.host is None:
            raise Misuse("link", "a server with a `domain`, on which ports have host names", self._caller.url)
        return f"{self.url}?belljar_token={self.token}"

    @property
    def headers(self) -> Mapping[str, str]:
        """What a request to `url` has to carry: the token, or, without a host name, the API key."""
        if self.permission.host is None:
            return {KEY_HEADER: self._caller.settings.key}
        return {TOKEN_HEADER: self.token}

    def _path(self) -> str:
        return at("v1", "sandboxes", self.sandbox_id, "ports", self.number, "proxy") + "/"

    @verb
    def request(
        self, method: str = "GET", path: str = "/", *, headers: Optional[Mapping[str, str]] = None, body: Optional[bytes] = None,
        timeout: Optional[float] = None,
    ) -> Plan[Answer]:
        """Asks the program, through the server. Gives whatever it answers; only that nothing listens there is an error."""
        steps = unquote(path.partition("?")[0]).replace("\\", "/").split("/")
        if ".." in steps or not path.startswith("/"):
            raise Misuse("path", "a path that begins with / and has no ..", path)
        answer: Answer = yield Send(Request(method, self._path() + path[1:], headers=headers or {}, body=body, silence=timeout))
        if answer.status == 502 and answer.headers.get("content-type") == "application/problem+json":
            raise self._caller.refused(answer)
        return answer


class Port(PortVerbs, Blocking):
    """One port of a sandbox."""

    def __init__(self, owner: Blocking, sandbox: str, number: int, permission: PortToken) -> None:
        self._as(owner)
        self._be(sandbox, number, permission)


class AsyncPort(PortVerbs, Awaiting):
    """One port of a sandbox."""

    def __init__(self, owner: Awaiting, sandbox: str, number: int, permission: PortToken) -> None:
        self._as(owner)
        self._be(sandbox, number, permission)
