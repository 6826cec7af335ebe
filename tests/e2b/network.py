"""E2B's unmodified Python SDK on a Belljar server: what goes out of sandboxes, and secrets that they use and never have.

Needs the SDK, its environment variables, and a server whose outside is the internet of tests/lab/internet.py. Ends with status 1 at the first difference.
"""

import json
import uuid

import e2b
from e2b import ALL_TRAFFIC, Sandbox

from lab.checks import check, checked, raises

API, OTHER = "203.0.113.10", "203.0.113.20"


def reaches(sandbox, *urls):
    """Which of these answer."""
    script = "; ".join(f"curl -sk --connect-timeout 5 --max-time 10 -o /dev/null -w '%{{http_code}} ' {url} || true" for url in urls)
    return [code == "200" for code in sandbox.commands.run(script).stdout.split()]


def rules():
    everywhere = [f"http://{API}/", f"http://{OTHER}/", "http://api.test/", "https://other.test/"]
    sandbox = Sandbox.create(template="base", timeout=120)
    check("everything is reached when nothing is said", reaches(sandbox, *everywhere), [True] * 4)
    if hasattr(sandbox, "update_network"):
        sandbox.update_network({"deny_out": [OTHER]})
        check("a denied address, by number and by name", reaches(sandbox, *everywhere), [True, False, True, False])
        sandbox.update_network({"deny_out": [ALL_TRAFFIC], "allow_out": ["other.test"]})
        check("an allowed name alone", reaches(sandbox, *everywhere), [False, False, False, True])
        sandbox.update_network({"deny_out": ["203.0.113.0/24"], "allow_out": [API]})
        check("what is allowed beats what is denied", reaches(sandbox, *everywhere), [True, False, True, False])
        sandbox.update_network({"allow_internet_access": False})
        check("nothing", reaches(sandbox, *everywhere), [False] * 4)
        sandbox.update_network({})
        check("everything again", reaches(sandbox, *everywhere), [True] * 4)
        raises("names need everything else denied", e2b.SandboxException, lambda: sandbox.update_network({"allow_out": ["api.test"]}))
    sandbox.kill()

    closed = Sandbox.create(template="base", timeout=60, allow_internet_access=False)
    check("no internet", reaches(closed, *everywhere), [False] * 4)
    if hasattr(closed, "update_network"):
        closed.update_network({})
        check("which can be given later", reaches(closed, *everywhere), [True] * 4)
    closed.kill()

    some = Sandbox.create(template="base", timeout=60, network={"deny_out": [ALL_TRAFFIC], "allow_out": [API, "*.wild.test"]})
    urls = [f"http://{API}/", f"http://{OTHER}/", "http://a.wild.test/", "https://b.wild.test/", "http://other.test/"]
    check("an address and a wildcard", reaches(some, *urls), [True, False, True, True, False])
    check("private addresses never", reaches(some, "http://169.254.169.254/", "http://10.0.0.1/"), [False, False])
    some.kill()


def headers(sandbox, url):
    return json.loads(sandbox.commands.run(f"curl -sS --max-time 10 {url}").stdout)["headers"]


def transforms():
    value = f"s3cret-{uuid.uuid4().hex}"
    rules = {"api.test": [{"transform": {"headers": {"X-Plain": "as it is"}}}]}
    if hasattr(e2b, "Secret"):
        name = f"Key-{uuid.uuid4().hex[:8]}"
        made = e2b.Secret.create(name, value, metadata={"env": "test"})
        check("a name in small letters", made.name, name.lower())
        check("its first version", made.version, 1)
        check("its metadata", made.metadata, {"env": "test"})
        check("it is found by its name", e2b.Secret.get_info(made.name).secret_id, made.secret_id)
        check("and is in the list", made.secret_id in [item.secret_id for item in e2b.Secret.list().next_items()])
        raises("there is one of each name", Exception, lambda: e2b.Secret.create(name, "x"))
        rules["api.test"][0]["transform"]["headers"]["Authorization"] = "Bearer " + e2b.Secret.fill(made.name)
    sandbox = Sandbox.create(template="base", timeout=120, network={"rules": rules})
    seen = headers(sandbox, "-H 'X-Plain: mine' -H 'Authorization: mine' https://api.test/x")
    check("a header is replaced", seen["x-plain"], "as it is")
    check("another host gets none", "x-plain" in headers(sandbox, "https://other.test/ -k"), False)
    if hasattr(e2b, "Secret"):
        check("a secret is put in", seen["authorization"], f"Bearer {value}")
        check("and never over plain HTTP", headers(sandbox, "http://api.test/").get("authorization"), None)
        inside = "env; sudo sh -c 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline'; sudo grep -rs s3cret[-] /etc /home /tmp /run /root || true"
        check("and is nowhere inside", value in sandbox.commands.run(inside).stdout, False)
        changed = e2b.Secret.update(made.secret_id, value + "-2")
        check("another version", changed.version, 2)
        check("is used at once", headers(sandbox, "https://api.test/")["authorization"], f"Bearer {value}-2")
        check("it is removed", e2b.Secret.destroy(made.secret_id), True)
        check("once", e2b.Secret.destroy(made.secret_id), False)
        check("and is not there", e2b.Secret.exists(made.name), False)
        check("so that requests are refused", reaches(sandbox, "https://api.test/"), [False])
    sandbox.kill()


rules()
transforms()
print(f"e2b (Python) {e2b.__version__ if hasattr(e2b, '__version__') else ''}: network, {checked()} checks passed")
