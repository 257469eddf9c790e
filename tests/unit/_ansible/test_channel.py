# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Channel and stopping: what a module does when ansible-playbook goes away or a signal comes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._ansible.channel import ENVIRONMENT, Channel, path_from_environment
from ansible_collections.ichor.talos.plugins.module_utils._ansible.stopping import SIGNALS, Stop
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError

WAIT = 10


class Plugin:
    """The other end of a channel, by hand."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "c")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(1)
        self.connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def greet(self, **hello: object) -> None:
        self._hello = hello
        self._thread.start()

    def _accept(self) -> None:
        self.connection = self._listener.accept()[0]
        self.connection.settimeout(WAIT)
        self.send({"hello": self._hello})

    def send(self, message: object) -> None:
        assert self.connection is not None
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> object:
        assert self.connection is not None
        data = b""
        while not data.endswith(b"\n"):
            data += self.connection.recv(4096)
        return json.loads(data)

    def close(self) -> None:
        self._thread.join(WAIT)
        if self.connection is not None:
            self.connection.close()
        self._listener.close()


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Plugin]:
    plugin = Plugin(tmp_path)
    yield plugin
    plugin.close()


def test_the_greeting_brings_secrets_and_the_actor_and_its_repr_shows_no_secret(plugin: Plugin) -> None:
    plugin.greet(secrets={"talosconfig_content": "deep secret"}, by="ada", via="root", schedule=True, store_path="/p/ichor", overlay="/o")
    channel = Channel(plugin.path, lambda: None)
    hello = channel.hello
    channel.close()
    assert (hello.by, hello.via, hello.schedule, hello.store_path, hello.overlay) == ("ada", "root", True, "/p/ichor", "/o")
    assert hello.secrets == {"talosconfig_content": "deep secret"}
    assert "deep secret" not in repr(hello)


def test_lines_go_out_and_questions_are_answered(plugin: Plugin) -> None:
    plugin.greet()
    channel = Channel(plugin.path, lambda: None)
    channel.line("looking")
    assert plugin.read() == {"line": "looking"}
    plugin.send({"answer": {"content": "clear\udcff"}})
    assert channel.clear_text("/etc/bundle") == b"clear\xff"
    assert plugin.read() == {"ask": {"path": "/etc/bundle"}}
    plugin.send({"answer": {"error": "no vault secrets found"}})
    with pytest.raises(TalosError, match="no vault secrets found") as caught:
        channel.clear_text("/etc/bundle")
    assert caught.value.reason == "SecretsUnavailable"
    channel.close()


def test_the_end_of_the_other_side_is_told_once(plugin: Plugin) -> None:
    told = threading.Semaphore(0)
    plugin.greet()
    channel = Channel(plugin.path, told.release)
    plugin.close()
    assert told.acquire(timeout=WAIT)
    channel.line("nobody hears this")
    assert not told.acquire(blocking=False)
    with pytest.raises(TalosError) as caught:
        channel.clear_text("/x")
    assert caught.value.reason == "Interrupted"


def test_closing_it_ourselves_is_no_break(plugin: Plugin) -> None:
    told: list[int] = []
    plugin.greet()
    channel = Channel(plugin.path, lambda: told.append(1))
    channel.close()
    channel.line("after the end")
    assert not told


def test_a_channel_that_nobody_serves_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TalosError) as caught:
        Channel(str(tmp_path / "none"), lambda: None)
    assert caught.value.reason == "InternalError" and "channel" in caught.value.message


def test_the_path_is_taken_out_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "/tmp/x")
    assert path_from_environment() == "/tmp/x"
    assert ENVIRONMENT not in os.environ
    assert path_from_environment() == ""


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_cancels_the_work_and_releases_what_it_holds(handlers: None, number: signal.Signals) -> None:
    left: list[str] = []
    stop = Stop(leave=lambda: left.append("left"))
    stop.on_signals()
    released: list[str] = []

    async def work() -> None:
        stop.attach()
        os.kill(os.getpid(), number)
        try:
            await asyncio.sleep(3600)
        finally:
            released.append("lease")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())
    stop.done()
    assert released == ["lease"] and stop.why == number.name and not left


def test_a_request_before_the_work_began_stops_it_at_once() -> None:
    stop = Stop(leave=lambda: None)
    stop.request("the end of ansible-playbook")

    async def work() -> None:
        stop.attach()
        await asyncio.sleep(3600)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())
    stop.done()


def test_work_that_does_not_let_go_is_left() -> None:
    left = threading.Event()
    stop = Stop(leave=left.set, grace=0.01)
    stop.request("SIGTERM")
    assert left.wait(WAIT)


def test_a_second_request_changes_nothing() -> None:
    stop = Stop(leave=lambda: None)
    stop.request("SIGTERM")
    stop.request("SIGINT")
    stop.done()
    assert stop.why == "SIGTERM"
