"""Programs in a sandbox, reached from outside by their host names over TLS, with E2B's unmodified Python SDK.

Needs the SDK, E2B_DOMAIN and E2B_API_KEY, names that lead to the server, and SSL_CERT_FILE if its certificate is not a public one.
"""

import base64
import hashlib
import json
import os
import socket
import ssl
import time
import urllib.error
import urllib.request

from e2b import Sandbox

from lab.checks import check, checked

PORT = 8000
# Listens on loopback alone, answers with the path and the Host it was asked for, and speaks as much of WebSocket as it takes to say a word back.
PROGRAM = """
import base64, hashlib, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("Upgrade") == "websocket":
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            for name, value in {"Upgrade": "websocket", "Connection": "Upgrade",
                                "Sec-WebSocket-Accept": base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()}.items():
                self.send_header(name, value)
            self.end_headers()
            frame = self.rfile.read(2)
            mask, text = self.rfile.read(4), self.rfile.read(frame[1] & 127)
            word = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text)).upper()
            self.wfile.write(bytes([0x81, len(word)]) + word)
            self.wfile.flush()
            self.close_connection = True
            return
        body = f"{self.path} for {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


def get(url, headers={}):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def websocket(host, word):
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), timeout=60) as plain:
        with ssl.create_default_context().wrap_socket(plain, server_hostname=name) as stream:
            key = base64.b64encode(os.urandom(16)).decode()
            lines = [f"GET /ws HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
            stream.sendall("\r\n".join([*lines, "", ""]).encode())
            reader = stream.makefile("rb")
            head = b"".join(iter(reader.readline, b"\r\n")).decode()
            accepted = base64.b64encode(hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()).decode()
            check("an upgrade", (head.startswith("HTTP/1.1 101"), accepted in head), (True, True))
            mask = os.urandom(4)
            stream.sendall(bytes([0x81, 0x80 | len(word)]) + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(word)))
            kind, length = reader.read(2)
            return kind, reader.read(length)


def wait_for(url, headers={}):
    for _ in range(100):
        status, text = get(url, headers)
        if status == 200:
            return text
        time.sleep(0.1)
    return f"{status}: {text}"


def main():
    sandbox = Sandbox.create(template="base", timeout=300)
    host = sandbox.get_host(PORT)
    check("a host name", host.startswith(f"{PORT}-{sandbox.sandbox_id}."))
    status, text = get(f"https://{host}/")
    check("a port that nobody listens on", (status, json.loads(text)["port"]), (502, PORT))
    sandbox.commands.run(f"cat > /tmp/program.py <<'END'\n{PROGRAM}\nEND")
    sandbox.commands.run("python3 /tmp/program.py", background=True, timeout=0)
    check("a program that listens on loopback", wait_for(f"https://{host}/a/b?c=d"), f"/a/b?c=d for {host}")
    check("a WebSocket", websocket(host, b"hello"), (0x81, b"HELLO"))
    link = sandbox.download_url("/tmp/program.py", user="user", use_signature_expiration=60)
    check("a signed link", PROGRAM.strip() in get(link)[1])

    closed = Sandbox.create(template="base", timeout=300, network={"allow_public_traffic": False})
    closed.files.write("/tmp/program.py", PROGRAM)
    closed.commands.run("python3 /tmp/program.py", background=True, timeout=0)
    url, token = f"https://{closed.get_host(PORT)}/", closed.traffic_access_token
    check("with its token", wait_for(url, {"e2b-traffic-access-token": token}).startswith("/ for "))
    check("without it", get(url)[0], 403)

    closed.kill()
    sandbox.kill()
    status, text = get(f"https://{host}/")
    check("a sandbox that was killed", (status, json.loads(text)["sandboxId"]), (502, sandbox.sandbox_id))
    print(f"ports by host name (Python): {checked()} checks passed")


main()
