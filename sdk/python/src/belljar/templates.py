"""Templates: what sandboxes are made from. A build goes on at the server if the connection breaks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Callable, List, Optional

from .errors import refusal
from .lines import cut_short
from .model import Model
from .plan import AwaitingGroup, BlockingGroup, Feed, Give, Plan, Verbs, each, stream, verb
from .request import Request, asking, at
from .transfer import Source, body_of


@dataclass(frozen=True)
class TemplateInfo(Model):
    """A template."""

    name: str
    origin: str
    layers: list[str]
    created_at: datetime
    owner: Optional[str] = None
    bytes: Optional[int] = None
    env: dict[str, str] = field(default_factory=dict[str, str])
    user: Optional[str] = None
    workdir: Optional[str] = None
    start: Optional[dict[str, Any]] = None


@dataclass(frozen=True)
class BuildStep:
    """What a build says of itself; the last one has the template."""

    text: str
    template: Optional[TemplateInfo] = None


class TemplateVerbs(Verbs):
    """What can be done with templates. `shared`: for all projects, which needs the scope `admin`."""

    @verb
    def list(self) -> Plan[List[TemplateInfo]]:
        """Those that the project sees, by name."""
        return (yield from self._caller.fetch_all(asking("GET", at("v1", "templates")), TemplateInfo, "templates"))

    @verb
    def get(self, name: str) -> Plan[TemplateInfo]:
        """One of them."""
        return (yield from self._caller.fetch(asking("GET", at("v1", "templates", name)), TemplateInfo))

    @verb
    def remove(self, name: str, *, shared: bool = False) -> Plan[None]:
        """Removes it; sandboxes that were made from it do not need it."""
        yield from self._caller.done(asking("DELETE", at("v1", "templates", name), query={"shared": shared}))

    def _made(self, name: str, recipe: Optional[str], image: Optional[str], shared: bool) -> Request:
        return asking("POST", at("v1", "templates", name), query={"shared": shared}, json={"recipe": recipe, "image": image})

    def _uploaded(self, name: str, source: Source, shared: bool) -> Request:
        return asking("PUT", at("v1", "templates", name, "archive"), query={"shared": shared}, body=body_of(source))

    def _steps(self, request: Request) -> Feed[BuildStep]:
        lines = yield from self._caller.lines(request)
        while True:
            line = yield from lines.next()
            if line is None:
                raise cut_short(self._caller.url)
            if line["type"] == "progress":
                yield Give(BuildStep(str(line["text"])))
            elif line["type"] == "failed":
                raise refusal(line["problem"])
            elif line["type"] == "done":
                yield Give(BuildStep("", self._caller.read(TemplateInfo, line["template"])))
                return

    def _finished(self, request: Request, progress: Optional[Callable[[str], object]]) -> Plan[TemplateInfo]:
        made: List[TemplateInfo] = []

        def take(step: BuildStep) -> None:
            if step.template is not None:
                made.append(step.template)
            elif progress is not None:
                progress(step.text)

        yield from each(self._steps(request), take)
        return made[-1]

    @verb
    def build(self, name: str, recipe: str, *, shared: bool = False, progress: Optional[Callable[[str], object]] = None) -> Plan[TemplateInfo]:
        """Makes one from a recipe (TOML). What the build says of itself is handed to `progress`: it is the build's word, and untrusted."""
        return (yield from self._finished(self._made(name, recipe, None, shared), progress))

    @verb
    def from_image(self, name: str, image: str, *, shared: bool = False, progress: Optional[Callable[[str], object]] = None) -> Plan[TemplateInfo]:
        """Makes one from an image in a registry."""
        return (yield from self._finished(self._made(name, None, image, shared), progress))

    @verb
    def upload(self, name: str, source: Source, *, shared: bool = False, progress: Optional[Callable[[str], object]] = None) -> Plan[TemplateInfo]:
        """Makes one from a root filesystem, an OCI layout or what `docker save` wrote."""
        return (yield from self._finished(self._uploaded(name, source, shared), progress))

    @stream
    def follow_build(self, name: str, recipe: str, *, shared: bool = False) -> Feed[BuildStep]:
        """The same as `build`, step by step."""
        yield from self._steps(self._made(name, recipe, None, shared))


class Templates(TemplateVerbs, BlockingGroup):
    """Templates."""


class AsyncTemplates(TemplateVerbs, AwaitingGroup):
    """Templates."""
