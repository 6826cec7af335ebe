"""A small internet of our own for programs that test what goes out of sandboxes: a namespace from which servers reach it, and in another one a name
server and web servers on public addresses that tell back what they were sent. Needs root, `ip` and `openssl`.

  with Internet() as internet:
      settings = internet.settings()     # of a server: its [network]

Run as a program it is what answers in there.
"""

import http.server
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

NAMES = {"api.test": "203.0.113.10", "other.test": "203.0.113.20", "a.wild.test": "203.0.113.10", "b.wild.test": "203.0.113.10"}
NAME_SERVER = "203.0.113.53"


def run(*words, **more):
    subprocess.run(words, check=True, **more)


class Internet:
    def __enter__(self):
        self.place = tempfile.TemporaryDirectory(prefix="belljar-internet-")
        mark = os.getpid()
        self.near, self.far = f"belljar-near-{mark}", f"belljar-far-{mark}"
        for name in (self.near, self.far):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", self.near, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", self.far)
        run("ip", "-n", self.near, "addr", "add", "203.0.113.1/24", "dev", "near")
        run("ip", "-n", self.near, "link", "set", "near", "up")
        run("ip", "-n", self.near, "route", "add", "default", "via", "203.0.113.2")
        run("ip", "-n", self.far, "addr", "add", "203.0.113.2/24", "dev", "far")
        run("ip", "-n", self.far, "link", "set", "far", "up")
        for address in {*NAMES.values(), NAME_SERVER}:
            run("ip", "-n", self.far, "addr", "add", f"{address}/32", "dev", "lo")
        self.certificates()
        command = ["ip", "netns", "exec", self.far, sys.executable, __file__, self.place.name]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for name in (self.near, self.far):
            run("ip", "netns", "delete", name)
        self.place.cleanup()

    def certificates(self):
        here = Path(self.place.name)
        quiet = {"cwd": here, "stderr": subprocess.DEVNULL}
        new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        run(*new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=the internet", **quiet)
        names = ",".join(f"DNS:{name}" for name in NAMES)
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", f"subjectAltName={names}", "-addext", "basicConstraints=CA:FALSE"]
        run(*new, "-keyout", "leaf.key", "-out", "leaf.pem", "-subj", "/CN=servers", *signed, **quiet)

    def settings(self):
        return (
            f'[network]\nnameservers = ["{NAME_SERVER}:53"]\nnamespace = "/run/netns/{self.near}"\n'
            f'certificates = "{self.place.name}/ca.pem"\n'
        )


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = json.dumps({"headers": {name.lower(): value for name, value in self.headers.items()}, "path": self.path}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


def answer_names(address):
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.bind((address, 53))
    while True:
        question, client = line.recvfrom(1500)
        at, labels = 12, []
        while question[at]:
            labels.append(question[at + 1 : at + 1 + question[at]].decode())
            at += 1 + question[at]
        found = NAMES.get(".".join(labels).lower())
        head = question[:2] + struct.pack(">HHHHH", 0x8180 if found else 0x8183, 1, 1 if found else 0, 0, 0)
        answer = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04" + socket.inet_aton(found) if found else b""
        line.sendto(head + question[12 : at + 5] + answer, client)


def main(place):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{place}/leaf.pem", f"{place}/leaf.key")
    plain, secure = (http.server.ThreadingHTTPServer(("0.0.0.0", port), Echo) for port in (80, 443))
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    for work in (lambda: answer_names(NAME_SERVER), plain.serve_forever, secure.serve_forever):
        threading.Thread(target=work, daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
