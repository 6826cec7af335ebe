"""A server of our own on the laboratory's data directory (BELLJAR_LAB), with a store of its own: what suites that speak to a server talk to.

Needs root, `cargo build -p belljar -p belljar-testkit` and the agent. BELLJAR_PROGRAMS names another directory with what cargo built.
"""

import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(os.environ.get("BELLJAR_PROGRAMS") or Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug")
# A connection to a port below these is never mistaken for the server's.
PORTS = range(21000, 29000)

SETTINGS = """
data_dir = "{data_dir}"
[server]
listen = "127.0.0.1:{port}"
{addressing}
[store]
url = "sqlite:{directory}/belljar.db"
[sandboxes]
allow_shared_kernel = true
disk_reserve = "64MiB"
max_sandboxes = 5000
memory_overcommit_percent = 1000000
memory_reserve = "16MiB"
"""


def free_port():
    for port in random.sample(PORTS, 50):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    sys.exit("no free port for a server")


class Server:
    """Over plain HTTP on one address; with a domain, over TLS with an authority of its own and a host name for each port of each sandbox."""

    def __init__(self, directory, settings="", domain=None):
        """`settings` follow those of `[sandboxes]` above."""
        self.program = os.environ.get("BELLJAR_BIN", str(PROGRAMS / "belljar"))
        self.domain, self.authority, addressing = domain, None, ""
        if domain:
            subprocess.run([self.program, "certs", domain, "--directory", directory], check=True, stdout=subprocess.DEVNULL)
            self.authority = str(Path(directory) / "authority.pem")
            addressing = f'domain = "{domain}"\ntls_certificate = "{directory}/server.pem"\ntls_key = "{directory}/server.key"'
        scope = json.loads(subprocess.run([PROGRAMS / "lab", "scope"], check=True, stdout=subprocess.PIPE).stdout)
        self.data_dir, self.port, self.log = Path(scope["data_dir"]), free_port(), Path(directory) / "log"
        config = Path(directory) / "belljar.toml"
        config.write_text(SETTINGS.format(data_dir=self.data_dir, port=self.port, directory=directory, addressing=addressing) + settings)
        agent = os.environ.get("BELLJAR_GUEST", str(ROOT / "target/guest/belljar-guest"))
        command = [self.program, "serve", "--config", str(config), "--guest", agent]
        self.process = subprocess.Popen(command, stdout=self.log.open("wb"), stderr=subprocess.STDOUT)
        self.url = f"{'https' if domain else 'http'}://127.0.0.1:{self.port}"

    def trust(self):
        """The names are checked by the SDKs; here the server is asked by its address."""
        if self.authority:
            trust = ssl.create_default_context(cafile=self.authority)
            trust.check_hostname = False
            return trust

    def wait(self):
        for _ in range(600):
            if self.process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"{self.url}/readyz", timeout=30, context=self.trust())
                self.key = (self.data_dir / "first-key").read_text().strip()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit(f"the server does not answer:\n{self.log.read_text()[-4000:]}")

    def ask(self, method, path, body=None):
        request = urllib.request.Request(f"{self.url}{path}", method=method, data=json.dumps(body).encode() if body is not None else None)
        request.add_header("authorization", f"Bearer {self.key}")
        request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request, timeout=60, context=self.trust()) as answer:
            return json.loads(answer.read() or b"null")

    def belljar(self):
        """What Belljar's own clients read."""
        return {"BELLJAR_URL": self.url, "BELLJAR_API_KEY": self.key, "BELLJAR_BIN": self.program}

    def make_template(self, name):
        """From its recipe; at once if nothing that it is made from has changed."""
        command = [self.program, "template", "build", "--shared", name, ROOT / "templates" / f"{name}.toml"]
        subprocess.run(command, check=True, env={**os.environ, **self.belljar()})

    def e2b(self):
        """What E2B's SDKs read."""
        key = {"E2B_API_KEY": self.key.replace("bj_", "e2b_")}
        if self.domain:
            trust = {"SSL_CERT_FILE": self.authority, "NODE_EXTRA_CA_CERTS": self.authority}
            return key | trust | {"E2B_DOMAIN": f"{self.domain}:{self.port}"}
        return key | {"E2B_API_URL": self.url, "E2B_SANDBOX_URL": self.url, "E2B_VOLUME_API_URL": self.url}

    def daytona(self):
        """What Daytona's SDKs read, and the key of another project."""
        url, trust = self.url, {}
        if self.domain:
            url = f"https://api.{self.domain}:{self.port}"
            trust = {"SSL_CERT_FILE": self.authority, "NODE_EXTRA_CA_CERTS": self.authority}
        self.ask("POST", "/v1/projects", {"id": "elsewhere"})
        other = self.ask("POST", "/v1/keys", {"project": "elsewhere", "scopes": ["read", "use"]})["secret"]
        keys = {"DAYTONA_API_KEY": self.key, "OTHER_API_KEY": other}
        return trust | keys | {"DAYTONA_API_URL": f"{url}/daytona/api", "DAYTONA_TARGET": "lab"}

    def words(self):
        return self.log.read_text(errors="replace")

    def keep_words(self, name):
        """Leaves the server's log with those of the tests."""
        kept = ROOT / ".cache" / "test-logs"
        kept.mkdir(parents=True, exist_ok=True)
        (kept / f"{name}-server.log").write_text(self.words())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=90)


def recover():
    """Takes away the sandboxes that a server left."""
    subprocess.run([PROGRAMS / "lab", "recover"], check=True, stdout=subprocess.DEVNULL)
