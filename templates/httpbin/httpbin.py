"""Answers requests with what they were, as go-httpbin does: /headers, /get, /post, /put, /patch, /delete, /anything, /ip, /user-agent, /status/{code}.

The standard library is all it needs. Values of headers and of the query are lists, because either may come more than once.
"""

import http.server
import json
import sys
import urllib.parse

BODY_MAX = 1 << 20
METHODS = {"/get": "GET", "/post": "POST", "/put": "PUT", "/patch": "PATCH", "/delete": "DELETE"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(min(int(self.headers.get("content-length") or 0), BODY_MAX))
        headers = {}
        for name, value in self.headers.items():
            headers.setdefault("-".join(part.capitalize() for part in name.split("-")), []).append(value)
        whole = {
            "args": urllib.parse.parse_qs(url.query, keep_blank_values=True),
            "data": body.decode("utf-8", "replace"),
            "headers": headers,
            "method": self.command,
            "origin": self.client_address[0],
            "url": f"http://{self.headers.get('host', '')}{self.path}",
        }
        if url.path.startswith("/status/") and url.path.removeprefix("/status/").isdecimal():
            status = int(url.path.removeprefix("/status/"))
            return self.send(status if 200 <= status <= 599 else 400, None)
        if url.path == "/headers":
            return self.send(200, {"headers": headers})
        if url.path == "/ip":
            return self.send(200, {"origin": whole["origin"]})
        if url.path == "/user-agent":
            return self.send(200, {"user-agent": self.headers.get("user-agent", "")})
        if url.path.startswith("/anything") or url.path == "/":
            return self.send(200, whole)
        if url.path in METHODS:
            return self.send(200, whole) if METHODS[url.path] == self.command else self.send(405, {"error": "method not allowed"})
        return self.send(404, {"error": "not found"})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer

    def send(self, status, content):
        text = b"" if content is None else json.dumps(content, indent=2).encode() + b"\n"
        self.send_response(status)
        self.send_header("content-type", "application/json; charset=utf-8")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("0.0.0.0", int(sys.argv[1])), Handler).serve_forever()
