"""The Python SDK with a server that has host names and TLS with an authority of its own: ports by name, with a token instead of a key.

Needs names that lead to the server, and BELLJAR_CA_FILE.
"""

import os
import ssl
import urllib.request

import belljar
from belljar import Belljar
from lab.checks import check, checked, raises


def main():
    trust = ssl.create_default_context(cafile=os.environ["BELLJAR_CA_FILE"])
    with Belljar() as client, client.create() as sandbox:
        sandbox.files.write("www/index.html", "<p>by name", parents=True)
        sandbox.start(["python3", "-m", "http.server", "8000"], cwd="/home/user/www")
        port = sandbox.port(8000, wait="30s")
        check("its own name", port.url.startswith(f"https://8000-{sandbox.id}."))
        check("the token, not the key", list(port.headers), ["x-belljar-token"])
        asked = urllib.request.Request(port.url, headers=dict(port.headers))
        check("with its headers", urllib.request.urlopen(asked, context=trust).read(), b"<p>by name")
        browser = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trust), urllib.request.HTTPCookieProcessor())
        check("as a link", browser.open(port.link).read(), b"<p>by name")
        raises("without either", urllib.error.HTTPError, lambda: urllib.request.urlopen(port.url, context=trust))
        check("through the server", port.request("GET", "/").body, b"<p>by name")
    os.environ.pop("BELLJAR_CA_FILE")
    with Belljar() as stranger:
        refused = raises("an authority that is not known", belljar.Unreachable, stranger.whoami)
        check("nothing was sent", (refused.maybe_done, "certificate" in str(refused)), (False, True))
    print(f"belljar (Python), by host names: {checked()} checks passed")


main()
