"""An agent as the protocol's own Python SDK makes one, whichever of its generations is installed: starts `belljar mcp` and calls its tools."""

import contextlib
import json
import os
import urllib.request
from dataclasses import dataclass

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

try:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
except ImportError:
    Client = None
    from mcp.client.streamable_http import streamablehttp_client

# The first generation says nothing when whoever waits for an answer is cancelled.
CANCELS = Client is not None
# The library hands its programs no environment but this.
VARIABLES = {name: value for name, value in os.environ.items() if name.startswith("BELLJAR_") or name == "PATH"}


def server(path, method="GET", body=None):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"{os.environ['BELLJAR_URL']}{path}", method=method, data=data)
    request.add_header("authorization", f"Bearer {os.environ['BELLJAR_API_KEY']}")
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def running():
    return {sandbox["id"] for sandbox in server("/v1/sandboxes?state=running")["sandboxes"]}


def best_template():
    """What a sandbox is made from if nobody says otherwise."""
    known = {template["name"] for template in server("/v1/templates")["templates"]}
    return "code-interpreter-v1" if "code-interpreter-v1" in known else "base"


@dataclass
class Answer:
    text: str
    pictures: list
    is_error: bool


def field(value, new, old):
    """What the second generation of the SDK calls otherwise."""
    return getattr(value, new) if hasattr(value, new) else getattr(value, old)


class Agent:
    def __init__(self, session, instructions, version):
        self.session, self.instructions, self.version = session, instructions, version

    async def tools(self):
        return {tool.name: field(tool, "input_schema", "inputSchema") for tool in (await self.session.list_tools()).tools}

    async def ask(self, tool, progress=None, **arguments):
        result = await self.session.call_tool(tool, arguments, progress_callback=progress)
        text = "\n".join(part.text for part in result.content if part.type == "text")
        pictures = [(field(part, "mime_type", "mimeType"), part.data) for part in result.content if part.type == "image"]
        return Answer(text, pictures, field(result, "is_error", "isError"))


@contextlib.asynccontextmanager
async def agent(*options, **variables):
    """`belljar mcp` with these options, for as long as the block lasts."""
    program = os.environ["BELLJAR_BIN"]
    parameters = StdioServerParameters(command=program, args=["mcp", *options], env={**VARIABLES, **variables})
    if Client:
        async with Client(parameters) as client:
            yield Agent(client, client.instructions, client.protocol_version)
        return
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        greeted = await session.initialize()
        yield Agent(session, greeted.instructions, greeted.protocolVersion)


@contextlib.asynccontextmanager
async def visitor(url, key):
    """Asks over HTTP, with this key."""
    headers = {"authorization": f"Bearer {key}"}
    if Client:
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http, Client(streamable_http_client(url, http_client=http)) as client:
            yield Agent(client, client.instructions, client.protocol_version)
        return
    async with streamablehttp_client(url, headers=headers) as (receive, send, _), ClientSession(receive, send) as session:
        greeted = await session.initialize()
        yield Agent(session, greeted.instructions, greeted.protocolVersion)
