"""What schemathesis cannot know: which sandbox and process exist, and which answers have no end.

Most requests go to a sandbox that is there, because one that is not is refused before anything is looked at. Streams that last as long as
their sandbox, and ports of programs that may answer what they like, are asked of one that is not there.
"""

import os

import schemathesis

SANDBOX = os.environ["SCHEMATHESIS_SANDBOX"]
ENDED_PROCESS = os.environ["SCHEMATHESIS_PROCESS"]
KEPT_TEMPLATE = os.environ["SCHEMATHESIS_TEMPLATE"]
NOWHERE = "s" + "2" * 19
ENDLESS = ("/files/watch", "/proxy/{path}", "/ws")


def inner(generated):
    """What was made up is sometimes wrapped together with how."""
    return getattr(generated, "value", generated)


@schemathesis.hook
def map_path_parameters(context, generated):
    path_parameters, path = inner(generated), context.operation.path
    if not isinstance(path_parameters, dict):
        return generated
    # An id that was made up is kept now and then: it has to be refused well, too.
    known = lambda text: sum(str(text).encode()) % 5 != 0
    if "id" in path_parameters and (known(path_parameters["id"]) or path.endswith(ENDLESS)):
        ends = context.operation.method.upper() == "DELETE" and path == "/v1/sandboxes/{id}" or path.endswith("/pause")
        path_parameters["id"] = NOWHERE if ends or path.endswith(ENDLESS) else SANDBOX
    if "process" in path_parameters and known(path_parameters["process"]):
        path_parameters["process"] = ENDED_PROCESS
    if path_parameters.get("name") == KEPT_TEMPLATE:
        path_parameters["name"] = "no-such-template"
    return generated


@schemathesis.hook
def map_headers(context, generated):
    """What HTTP itself forbids in a header is refused before there is a request that could be answered with a problem."""
    headers = inner(generated)
    if isinstance(headers, dict):
        for name, value in headers.items():
            headers[name] = "".join(letter for letter in str(value) if " " <= letter <= "~" or "\xa0" <= letter <= "\xff").strip() or "x"
    return generated


@schemathesis.hook
def map_body(context, generated):
    """A lease of a moment, or an image from far away, would end the run or leave the machine."""
    body, path = inner(generated), context.operation.path
    if isinstance(body, dict) and path in ("/v1/sandboxes/{id}/lease", "/v1/sandboxes/{id}"):
        for field in ("seconds", "lease_seconds", "idle_timeout_seconds"):
            if isinstance(body.get(field), int) and 0 < body[field] < 3600:
                body[field] = 3600
    if isinstance(body, dict) and path == "/v1/templates/{name}" and "image" in body:
        body["image"] = "127.0.0.1:9/nothing:here"
    return generated


@schemathesis.hook
def before_call(context, case, kwargs):
    """An answer that waits for news for a minute, as it was asked to, is no hang."""
    wait = (case.query or {}).get("wait_seconds")
    if str(wait).isdecimal() and 2 < int(wait) <= 60:
        case.query["wait_seconds"] = 2
