# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A way to a real API server on which tests let requests fail: answers that it gives itself, and connections that it cuts."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

from tests.parts.apiserver import ADMIN_TOKEN, ApiServer

#: What the proxy answers instead: status, reason, headers. None cuts the connection without a word; False hands the request on.
Fault = tuple[int, str, dict[str, str]] | None | bool


class Proxy(ThreadingHTTPServer):
    """`fault(method, path)` says for each request what becomes of it; `seen` holds them all."""

    daemon_threads = True

    def __init__(self, server: ApiServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = server
        self.fault: Callable[[str, str], Fault] = lambda method, path: False
        self.seen: list[tuple[str, str]] = []
        # One that knows no CA: those of the machine take a tenth of a second to read.
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.watches: list[http.client.HTTPResponse] = []

    def kubeconfig(self) -> str:
        return yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": f"http://127.0.0.1:{self.server_port}"}}],
            "users": [{"name": "proxy", "user": {"token": ADMIN_TOKEN}}], "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}]})

    def once(self, fault: Fault, *methods: str, part: str = "") -> None:
        """The next request with one of these methods and this in its path fails."""
        left = [fault]

        def failing(method: str, path: str) -> Fault:
            return left.pop() if left and method in methods and part in path else False

        self.fault = failing

    def count(self, part: str, method: str = "GET") -> int:
        return sum(1 for one, path in self.seen if one == method and part in path)

    def drop_watches(self) -> None:
        """Cut every watch that stands."""
        while self.watches:
            answer = self.watches.pop()
            with contextlib.suppress(OSError, AttributeError):
                socket.socket(fileno=socket.dup(answer.fileno())).shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: the tests look at `seen`."""

    def _handle(self) -> None:
        proxy = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        proxy.seen.append((self.command, self.path))
        fault = proxy.fault(self.command, self.path)
        if fault is None:
            self.close_connection = True
            return
        if isinstance(fault, tuple):
            status, reason, headers = fault
            said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": f"made by a test: {reason}", "code": status}
            self._answer(status, {**headers, "Content-Type": "application/json"}, json.dumps(said).encode())
            return
        connection = http.client.HTTPSConnection("127.0.0.1", proxy.behind.port, timeout=60, context=proxy.context)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length", "connection")}
            connection.request(self.command, self.path, body or None, headers)
            answer = connection.getresponse()
            if "watch=1" in self.path and answer.status == 200:
                self._pass_on(answer)
            else:
                self._answer(answer.status, dict(answer.getheaders()), answer.read())
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            connection.close()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _pass_on(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        self.server.watches.append(answer)
        while data := answer.read1(65536):
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()


@contextmanager
def proxied(server: ApiServer) -> Iterator[Proxy]:
    """A proxy before the API server, for as long as the block runs."""
    proxy = Proxy(server)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.drop_watches()
        proxy.shutdown()
        proxy.server_close()
