# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A headless Chromium, driven over the pipe of its debugging protocol, which needs no library and opens no port."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

#: Longer than any answer takes on any machine.
SECONDS = 240
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--disable-dev-shm-usage", "--remote-debugging-pipe")


def find() -> str:
    """The program; installed from the distribution's packages by root on Debian and its kin. Raises FileNotFoundError."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (("update", "-qq"), ("install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core")):
            subprocess.run(["apt-get", *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
                           env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise FileNotFoundError("there is no Chromium: install the package chromium, or put one into PATH")
    return found


@dataclass
class Seen:
    """What a page did while it was open. `requests` are addresses, `console` whatever the browser had to say, `width` that of its content."""

    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    width: int = 0
    text: str = ""


class Browser:
    """One browser; use it as a context."""

    def __init__(self) -> None:
        self._profile = Path(tempfile.mkdtemp(prefix="chromium-"))
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def places() -> None:
            # the protocol's ends are 3 and 4; both are first moved out of each other's way
            reading, writing = os.dup(to_read), os.dup(to_write)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self._process = subprocess.Popen([find(), *QUIET, f"--user-data-dir={self._profile}", "about:blank"], preexec_fn=places, close_fds=False,
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self._pending = b""
        self._number = 0
        self._seen = Seen()
        self._loaded = False
        self._session = ""
        target = self._ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = str(self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._ask(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(AssertionError, OSError):
            self._ask("Browser.close", outside=True)
            self._process.wait(SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, path: Path, width: int, *, dark: bool = False) -> Seen:
        """Load a file at that width and wait until all of it is there."""
        self._seen, self._loaded = Seen(), False
        self._ask("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})
        self._ask("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self._ask("Page.navigate", {"url": path.resolve().as_uri()})
        while not self._loaded:
            self._message()
        self._seen.width = int(str(self.value("document.documentElement.scrollWidth")))
        self._seen.text = str(self.value("document.body.innerText"))
        return self._seen

    def value(self, expression: str) -> object:
        """What the page's own tree says; the debugger may, where the page's policy lets no script run."""
        return self._ask("Runtime.evaluate", {"expression": expression, "returnByValue": True})["result"].get("value")

    def screenshot(self, path: Path, height: int = 0) -> None:
        """The whole page as PNG, or its first `height` pixels."""
        options: dict[str, Any] = {"captureBeyondViewport": True}
        if height:
            options["clip"] = {"x": 0, "y": 0, "width": self._seen.width, "height": height, "scale": 1}
        else:
            size = self._ask("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16_000), "scale": 1}
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", options)["data"]))

    def _ask(self, method: str, options: dict[str, Any] | None = None, *, outside: bool = False) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": options or {}}
        if self._session and not outside:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer}"
                return dict(answer["result"])

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            assert select.select([self._read], [], [], SECONDS)[0], "the browser says nothing"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser is gone"
            self._pending += data
        line, dummy, self._pending = self._pending.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(str(message.get("method", "")), message.get("params", {}))
        return message

    def _note(self, method: str, told: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self._seen.requests.append(told["request"]["url"])
        elif method == "Log.entryAdded":
            self._seen.console.append(f"{told['entry']['level']}: {told['entry']['text']}")
        elif method == "Runtime.consoleAPICalled":
            self._seen.console.append(f"{told['type']}: {told['args']}")
        elif method == "Runtime.exceptionThrown":
            self._seen.console.append(str(told["exceptionDetails"].get("text")))
        elif method == "Page.loadEventFired":
            self._loaded = True
