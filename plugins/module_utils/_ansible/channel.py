# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module's end of the channel to the action plugin (design section 18).

A Unix socket in a 0700 folder of the action plugin's, whose path comes in the environment. One JSON object a line. From the
plugin: first `{"hello": {…}}` with what a module cannot know, later `{"answer": {…}}`. To the plugin: `{"line": text}` to
be shown, `{"ask": {"path": …}}` for the clear text of a vaulted file. When the plugin's end closes, ansible-playbook is
gone and the module has to stop.
"""

from __future__ import annotations

import json
import os
import queue
import select
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .._model.errors import TalosError

#: Names the socket. Without it the module runs without the plugin and takes plain options.
ENVIRONMENT = "ICHOR_CHANNEL"
#: What stands in a module's arguments for an option whose value comes over the channel.
PLACEHOLDER = "(comes over the channel)"
_CONNECT_SECONDS = 10.0
_SEND_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Hello:
    """What the action plugin tells: secret options, default paths, who acts, the overlay's folder in check mode, and a name of
    this run of ansible-playbook."""

    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    store_path: str = ""
    by: str = ""
    via: str = ""
    schedule: bool = False
    overlay: str = ""
    run: str = ""


class Channel:
    """An open channel. `on_broken` is called once, from a thread, when the other end is gone."""

    def __init__(self, path: str, on_broken: Callable[[], None]) -> None:
        self._on_broken = on_broken
        self._lock = threading.Lock()
        self._messages: queue.Queue[Mapping[str, object] | None] = queue.Queue()
        self._closing = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_CONNECT_SECONDS)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise TalosError("InternalError", "The action plugin of this task does not answer on its channel.",
                             "Run the task again; when become is used, take it off, since the module needs no privileges.",
                             detail=str(error)) from error
        self._socket.settimeout(_SEND_SECONDS)
        threading.Thread(target=self._read, name="channel", daemon=True).start()
        self.hello = self._greeting()

    def _greeting(self) -> Hello:
        told = self._next("hello")
        secrets = told.get("secrets")
        return Hello(
            secrets={str(key): str(value) for key, value in secrets.items()} if isinstance(secrets, Mapping) else {},
            store_path=str(told.get("store_path") or ""), by=str(told.get("by") or ""), via=str(told.get("via") or ""),
            schedule=bool(told.get("schedule")), overlay=str(told.get("overlay") or ""),
            run=str(told.get("run") or ""))

    def line(self, text: str) -> None:
        """Have one line shown."""
        self._send({"line": text})

    def clear_text(self, path: str) -> bytes:
        """The clear text of a file that may be vaulted, read by the action plugin with its vault secrets."""
        self._send({"ask": {"path": path}})
        answer = self._next("answer")
        problem = str(answer.get("error") or "").rstrip(".")
        if problem:
            raise TalosError("SecretsUnavailable", f"{path} cannot be decrypted: {problem}.",
                             "Give ansible-playbook the vault password or identity of that file.")
        return str(answer.get("content") or "").encode("utf-8", "surrogateescape")

    def close(self) -> None:
        """End it; the other side sees an orderly end."""
        self._closing = True
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()

    def _send(self, message: Mapping[str, object]) -> None:
        data = json.dumps(message).encode() + b"\n"
        try:
            with self._lock:
                self._socket.sendall(data)
        except OSError:
            self._broken()

    def _next(self, key: str) -> Mapping[str, object]:
        try:
            message = self._messages.get(timeout=_ANSWER_SECONDS)
        except queue.Empty:
            message = None
        content = message.get(key) if message else None
        if not isinstance(content, Mapping):
            raise TalosError("Interrupted", "The channel to ansible-playbook broke.", "Run the task again.")
        return content

    def _read(self) -> None:
        pending = b""
        while True:
            try:
                select.select([self._socket], [], [])
                data = self._socket.recv(_CHUNK)
            except (OSError, ValueError):
                data = b""
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                self._messages.put(json.loads(line))
        self._messages.put(None)
        self._broken()

    def _broken(self) -> None:
        if not self._closing:
            self._closing = True
            self._on_broken()


def path_from_environment() -> str:
    """The channel's path, taken out of the environment so that nothing that is started later sees it; '' without one."""
    return os.environ.pop(ENVIRONMENT, "")
