# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program that a kubeconfig names to log in, by the ExecCredential of `client.authentication.k8s.io` (design section 4).

The official client would wait for it without end, go on without a credential where it fails, and write its keys into temporary files.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from .._model.errors import TalosError
from .._model.moments import seconds_of
from .._model.plain_files import NotJson, read_json
from .._model.records import Json, JsonMap, dig, list_at, text_at
from .programs import call

#: Seconds for one login: a cloud is asked, nobody is.
LOGIN_TIMEOUT = 60.0
#: Seconds before its end at which a credential is not used any more.
_EARLY = 30.0
#: No credential, and no complaint, is longer.
_LONGEST = 1 << 20
_EXTENSION = "client.authentication.k8s.io/exec"
_HINT = "Call it as the kubeconfig does, on the machine that runs the playbook, and see what it says."


@dataclass(frozen=True)
class Issued:
    """A token, or a certificate with its key (PEM texts); `until`: UTC seconds, None where it does not say."""

    token: str = field(default="", repr=False)
    pair: tuple[str, str] | None = field(default=None, repr=False)
    until: float | None = None


class LoginPlugin:
    """One `exec` of a kubeconfig. `folder`: of the kubeconfig; `cluster`: as the program is told of it. Used from threads: it runs once at a time."""

    def __init__(self, config: JsonMap, folder: str, cluster: JsonMap, *, timeout: float = LOGIN_TIMEOUT, now: Callable[[], float] = time.time) -> None:
        self._config, self._folder, self._cluster = config, folder, cluster
        self._timeout, self._now = timeout, now
        self._turn = threading.Lock()
        self._issued: Issued | None = None

    def issued(self) -> Issued:
        """What is good for another while. Raises TalosError `CredentialsInvalid`."""
        with self._turn:
            if self._issued is None or self._issued.until is not None and self._now() >= self._issued.until - _EARLY:
                self._issued = self._read(self._run())
            return self._issued

    def forget(self) -> None:
        """The API server does not take it: the next one is issued anew."""
        with self._turn:
            self._issued = None

    def _run(self) -> bytes:
        named = text_at(self._config, "command")
        if text_at(self._config, "interactiveMode") == "Always":
            raise self._failed("asks a person, and here is nobody to answer")
        path = os.path.join(self._folder, named) if os.path.dirname(named) else shutil.which(named) if named else None
        if path is None:
            raise self._failed("is not there", text_at(self._config, "installHint"))
        words = [value for value in list_at(self._config, "args") if isinstance(value, str)]
        try:
            # In a thread of its own, since the one that asks may have a loop that runs.
            with ThreadPoolExecutor(max_workers=1) as thread:
                ended = thread.submit(asyncio.run, call((path, *words), b"", self._timeout, _LONGEST, self._environment())).result()
        except asyncio.TimeoutError:
            raise self._failed(f"did not end within {self._timeout:g} s") from None
        except (OSError, ValueError) as error:
            raise self._failed(f"cannot be started: {getattr(error, 'strerror', None) or 'its arguments are none'}",
                               text_at(self._config, "installHint")) from None
        if max(len(ended.out), len(ended.said)) > _LONGEST:
            raise self._failed(f"prints more than {_LONGEST >> 20} MiB")
        if ended.status:
            lines = ended.said.decode("utf-8", "replace").split("\n")
            last = next((" ".join(line.split()) for line in reversed(lines) if line.strip()), "it says nothing")
            raise self._failed(f"ended with status {ended.status}: {last[:200].rstrip('.')}")
        return ended.out

    def _environment(self) -> dict[str, str]:
        own = {text_at(entry, "name"): text_at(entry, "value") for entry in list_at(self._config, "env") if text_at(entry, "name")}
        spec: dict[str, Json] = {"interactive": False}
        if dig(self._config, "provideClusterInfo") is True:
            told = {key: value for key, value in self._cluster.items() if key != "extensions"}
            extension = next((entry for entry in list_at(self._cluster, "extensions") if text_at(entry, "name") == _EXTENSION), None)
            spec["cluster"] = {**told, **({"config": dig(extension, "extension")} if extension is not None else {})}
        asked: Json = {"apiVersion": text_at(self._config, "apiVersion"), "kind": "ExecCredential", "spec": spec}
        return {**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(asked)}

    def _read(self, out: bytes) -> Issued:
        """What it printed; nothing of that is quoted."""
        try:
            found = read_json(out)
        except NotJson:
            found = None
        if text_at(found, "kind") != "ExecCredential" or text_at(found, "apiVersion") != text_at(self._config, "apiVersion"):
            raise self._failed(f"prints no ExecCredential of {text_at(self._config, 'apiVersion') or 'any version'}")
        token, certificate, key = (text_at(found, "status", name) for name in ("token", "clientCertificateData", "clientKeyData"))
        if not token and not (certificate and key):
            raise self._failed("gives neither a token nor a certificate with its key")
        ends = text_at(found, "status", "expirationTimestamp")
        return Issued(token.strip(), (certificate, key) if certificate and key else None, seconds_of(ends) if ends else None)

    def _failed(self, what: str, hint: str = "") -> TalosError:
        name = os.path.basename(text_at(self._config, "command")) or "without a name"
        return TalosError("CredentialsInvalid", f"The login program {name} of the kubeconfig {what}.", " ".join(hint.split()) or _HINT)
