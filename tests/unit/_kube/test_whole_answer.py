# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An API server that sends drop by drop is given up: each drop comes in time, the whole never does (design law: every call has a deadline)."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.api import Api, ApiSilent

from tests.unit._operations.managed_world import serving

Talk = Callable[[ssl.SSLSocket], None]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextmanager
def talking(folder: Path, talk: Talk) -> Iterator[Api]:
    """A client of a server that handles each connection so; the clock of the client goes on by a second at each look."""
    made = serving()
    (folder / "crt").write_text(made.certificate)
    (folder / "key").write_text(made.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "crt", folder / "key")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, dummy = listener.accept()
                    threading.Thread(target=handle, args=(connection,), daemon=True).start()

        def handle(connection: socket.socket) -> None:
            with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as wrapped:
                talk(wrapped)

        threading.Thread(target=serve, daemon=True).start()
        authority = base64.b64encode(made.authority.encode()).decode()
        config = yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [],
            "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{listener.getsockname()[1]}", "certificate-authority-data": authority}}],
            "contexts": [{"name": "c", "context": {"cluster": "c"}}]})
        api = open_api(Access(content=config), patience=0.0)
        seconds = itertools.count()
        api._monotonic = lambda: float(next(seconds))
        try:
            yield api
        finally:
            api.close()
            listener.shutdown(socket.SHUT_RDWR)


def drip(begin: bytes) -> Talk:
    """Nobody ends it but the client."""
    def talk(connection: ssl.SSLSocket) -> None:
        connection.recv(65536)
        connection.sendall(begin)
        while True:
            connection.sendall(b"a")

    return talk


@pytest.mark.parametrize("begin", [HEAD + b"Content-Length: 99999999999\r\n\r\n", HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n", HEAD + b"X: "],
                         ids=["body", "chunk", "header"])
def test_what_comes_drop_by_drop_is_given_up(tmp_path: Path, begin: bytes) -> None:
    with talking(tmp_path, drip(begin)) as api, pytest.raises(ApiSilent) as caught:
        api.request("GET", "/api/v1/nodes")
    assert caught.value.sent


def test_an_answer_in_many_parts_comes_and_a_watch_has_no_limit(tmp_path: Path) -> None:
    events = [{"type": "ADDED", "object": {"n": number}} for number in range(300)]

    def talk(connection: ssl.SSLSocket) -> None:
        connection.recv(65536)
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for event in events:
            line = json.dumps(event).encode() + b"\n"
            connection.sendall(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        connection.sendall(b"0\r\n\r\n")

    with talking(tmp_path, talk) as api:
        assert list(api.stream("/watch", {}, 60.0, lambda: None)) == events


def test_a_server_of_another_authority_is_not_asked_again(tmp_path: Path) -> None:
    asked = []
    with talking(tmp_path, asked.append) as api:
        other = yaml.safe_dump({"current-context": "c", "users": [], "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                                "clusters": [{"name": "c", "cluster": {"server": api.host}}]})
        stranger = open_api(Access(content=other), patience=1e6)
        with pytest.raises(ApiSilent, match="CERTIFICATE_VERIFY_FAILED") as caught:
            stranger.request("GET", "/x")
        stranger.close()
    assert asked == [] and not caught.value.sent
