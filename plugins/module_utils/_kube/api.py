# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests to one Kubernetes API server, as plain JSON (design section 4).

The official client reads the kubeconfig, runs its login plugins and keeps the connections; its typed classes are not used,
since four of five things here are custom resources. Every request has a deadline.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlencode

try:
    import urllib3
except ImportError:
    urllib3 = None  # type: ignore[assignment, unused-ignore]

from .._model.records import Json, JsonMap, list_at, text_at
from .whole_answer import within

#: Seconds until an answer begins and between two parts of it, and for a connection.
REQUEST_TIMEOUT = 10.0
CONNECT_TIMEOUT = 5.0
#: How many times its seconds an answer may take as a whole: a long list over a slow line comes, and a server that sends drop by drop is given up.
_WHOLE = 3.0
#: Seconds for which what is certain to have done nothing is tried again: a refused connection, "too many requests", a failed read.
PATIENCE = 30.0
#: No answer is larger.
LARGEST_ANSWER = 64 << 20
MERGE_PATCH = "application/merge-patch+json"
_LONGEST_PAUSE = 5.0


@dataclass
class ApiRefused(Exception):
    """The API server answered with an error: HTTP status, the reason of its Status object, its message, and what it says was the cause."""

    status: int
    reason: str
    message: str
    retry_after: float = 0.0
    #: The Status object names an object: without one, a 404 speaks of the resource itself. `kind`: the resource of the object, such as `namespaces`.
    names_object: bool = False
    cause: str = ""
    kind: str = ""


@dataclass
class ApiSilent(Exception):
    """No answer. `sent` says that the request may have been carried out, `final` that another try comes to the same."""

    message: str
    sent: bool
    final: bool = False


class Answer(Protocol):
    """What urllib3 gives for a request whose content was not read yet."""

    status: int

    @property
    def headers(self) -> Mapping[str, str]: ...

    def read(self, amt: int) -> bytes: ...

    def stream(self, amt: int | None, decode_content: bool | None) -> Iterator[bytes]: ...

    def release_conn(self) -> None: ...


class Pool(Protocol):
    """urllib3's pool of connections."""

    def request(self, method: str, url: str, *, body: bytes | None, headers: Mapping[str, str], timeout: object, retries: bool,
                preload_content: bool) -> Answer: ...

    def clear(self) -> None: ...


class Api:
    """One API server. `authorize` gives the headers of a request anew each time, since tokens run out; `renew` is asked for another credential where the API
    server does not take this one, and says whether it is worth trying. `connect`, `timeout` and `patience` are seconds: for a connection, for an answer to
    go on, and for which is tried again what certainly did nothing; `silence` is the latter where nobody answers at all, as `patience` when it is None."""

    def __init__(self, pool: Pool, host: str, authorize: Callable[[], Mapping[str, str]], renew: Callable[[], bool] = lambda: False, *,
                 connect: float = CONNECT_TIMEOUT, timeout: float = REQUEST_TIMEOUT, patience: float = PATIENCE,
                 silence: float | None = None, monotonic: Callable[[], float] = time.monotonic,
                 pause: Callable[[float], None] = time.sleep) -> None:
        self.host = host.rstrip("/")
        self._pool = pool
        self._authorize = authorize
        self._renew = renew
        self._connect = connect
        self._timeout = timeout
        self._patience = patience
        self._silence = patience if silence is None else silence
        self._monotonic = monotonic
        self.pause = pause

    def close(self) -> None:
        """Close every connection."""
        self._pool.clear()

    def get(self, path: str, query: Mapping[str, str] | None = None) -> JsonMap | None:
        """The object at a path, or None where there is no such object. Raises ApiRefused (also where the resource itself is unknown), ApiSilent."""
        try:
            return self.request("GET", path, query=query)
        except ApiRefused as refused:
            if refused.status == 404 and refused.names_object:
                return None
            raise

    def request(self, method: str, path: str, body: JsonMap | None = None, *, query: Mapping[str, str] | None = None,
                content_type: str = "application/json", accept: str = "application/json") -> JsonMap:
        """One request and its answer. What certainly did nothing is tried again for a while. Raises ApiRefused, ApiSilent."""
        begun = self._monotonic()
        wait = 0.2
        renewed = False
        while True:
            try:
                return self._once(method, path, body, query, content_type, accept)
            except ApiRefused as refused:
                if refused.status == 401 and not renewed and self._renew():
                    renewed = True
                    continue
                if refused.status != 429 and (method != "GET" or refused.status < 500):
                    raise
                wait = max(wait, refused.retry_after)
                if self._monotonic() + wait > begun + self._patience:
                    raise
            except ApiSilent as silent:
                if silent.final or silent.sent and method != "GET" or self._monotonic() + wait > begun + self._silence:
                    raise
            self.pause(wait)
            wait = min(wait * 2, _LONGEST_PAUSE)

    def stream(self, path: str, query: Mapping[str, str], quiet: float, opened: Callable[[], None]) -> Iterator[JsonMap]:
        """The events of a watch, as they come, until the API server ends it; nothing is tried again. `opened` is called when it stands, and
        `quiet` seconds without a byte end it. Raises ApiRefused, ApiSilent."""
        headers = {"Accept": "application/json", "User-Agent": "ichor.talos", **self._authorize()}
        left = b""
        try:
            answer = self._pool.request("GET", f"{self.host}{path}?{urlencode(query)}", body=None, headers=headers,
                                        timeout=urllib3.Timeout(connect=self._connect, read=quiet), retries=False, preload_content=False)
            if answer.status != 200:
                if answer.status == 401:
                    self._renew()
                with within(self._timeout * _WHOLE, self._monotonic):
                    _parsed(answer, answer.read(LARGEST_ANSWER))
                return
            opened()
            for piece in answer.stream(None, False):
                *lines, left = (left + piece).split(b"\n")
                if len(left) > LARGEST_ANSWER:
                    raise ApiSilent(f"an event is larger than {LARGEST_ANSWER >> 20} MiB", True)
                for line in lines:
                    event: Json = json.loads(line) if line.strip() else None
                    if isinstance(event, dict):
                        yield event
        except (urllib3.exceptions.HTTPError, OSError, ValueError, RecursionError) as error:
            raise ApiSilent(_said(error), True) from None

    def _once(self, method: str, path: str, body: JsonMap | None, query: Mapping[str, str] | None, content_type: str, accept: str) -> JsonMap:
        url = f"{self.host}{path}{'?' + urlencode(query) if query else ''}"
        headers = {"Accept": accept, "User-Agent": "ichor.talos", **self._authorize()}
        content = None
        if body is not None:
            content = json.dumps(body, allow_nan=False).encode()
            headers["Content-Type"] = content_type
        connected = False
        try:
            with within(self._connect + self._timeout * _WHOLE, self._monotonic):
                answer = self._pool.request(method, url, body=content, headers=headers, timeout=urllib3.Timeout(connect=self._connect, read=self._timeout),
                                            retries=False, preload_content=False)
                connected = True
                data = answer.read(LARGEST_ANSWER + 1)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            unsent = isinstance(error, (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError, urllib3.exceptions.SSLError))
            raise ApiSilent(_said(error), connected or not unsent, "CERTIFICATE_VERIFY_FAILED" in str(error)) from None
        answer.release_conn()
        if len(data) > LARGEST_ANSWER:
            raise ApiSilent(f"its answer is larger than {LARGEST_ANSWER >> 20} MiB", True)
        return _parsed(answer, data)


def _parsed(answer: Answer, data: bytes) -> JsonMap:
    try:
        parsed: Json = json.loads(data)
    except (ValueError, RecursionError):
        parsed = None
    found: JsonMap = parsed if isinstance(parsed, dict) else {}
    if 200 <= answer.status < 300 and isinstance(parsed, dict):
        return found
    details = found.get("details")
    try:
        retry_after = float(answer.headers.get("Retry-After") or 0.0)
    except ValueError:
        retry_after = 0.0
    message = found.get("message")
    raise ApiRefused(answer.status, str(found.get("reason") or ""), message if isinstance(message, str) else f"HTTP status {answer.status}",
                     min(max(retry_after, 0.0), _LONGEST_PAUSE), isinstance(details, dict) and bool(details.get("name")),
                     next((text_at(cause, "message") for cause in list_at(found, "details", "causes")), ""), text_at(details, "kind"))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
