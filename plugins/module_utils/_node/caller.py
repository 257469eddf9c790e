# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one function that sends something to a node: deadline, check mode, caps, and errors with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from .._model.errors import CheckModeWrite, TalosError
from .._model.observations import Endpoint
from .._model.timing import Timing
from . import clean
from .bridge import Bridge, grpc
from .calls import Call
from .failures import failed
from .messages import Method, method
from .silence import Silence
from .writes import Writes

try:
    from google.protobuf.message import DecodeError
except ImportError:
    DecodeError = ValueError  # type: ignore[assignment,misc]

#: Messages of one stream; Talos sends one resource a message.
STREAM_LIMIT = 16384
#: How much longer than its deadline a call is waited for, should gRPC itself not notice that it is over.
_GRACE = 2.0

#: gRPC code that the node answered -> reason, where the call has no better one.
_CODES = {
    "PERMISSION_DENIED": "PermissionDenied", "UNAUTHENTICATED": "PermissionDenied", "UNIMPLEMENTED": "Unimplemented",
    "NOT_FOUND": "NotFound", "ALREADY_EXISTS": "AlreadyExists", "FAILED_PRECONDITION": "FailedPrecondition",
    "DEADLINE_EXCEEDED": "TimedOut", "INVALID_ARGUMENT": "NodeRefused", "UNKNOWN": "NodeRefused", "UNAVAILABLE": "CallFailed",
    "ABORTED": "FailedPrecondition", "RESOURCE_EXHAUSTED": "CallFailed", "INTERNAL": "CallFailed", "DATA_LOSS": "CallFailed",
    "OUT_OF_RANGE": "NodeRefused", "CANCELLED": "ConnectionLost",
}
#: What grpcio's core itself says when what answers speaks HTTP/2 but not gRPC, or says too much.
_NOT_GRPC = ("Received http2 header with status", "http2 header with invalid", "Unexpected content-type", "HTTP status code", "Data frame with END_STREAM")
_TOO_LARGE = ("Received message larger than max", "received metadata size exceeds", "header size exceeds")


class Caller:
    """Calls over one bridge. `check` is check mode: a write then is a bug and raises CheckModeWrite."""

    def __init__(self, bridge: Bridge, *, check: bool, timing: Timing, answer_limit: int, writes: Writes) -> None:
        self._bridge = bridge
        self._check = check
        self._timing = timing
        self._answer_limit = answer_limit
        self._writes = writes

    @property
    def node(self) -> Endpoint:
        """Where the calls go."""
        return self._bridge.upstream.node

    async def send(self, call: Call, request: Any, *, parts: Iterable[Any] = (), node: str = "") -> list[Any]:
        """Send and read to the end: one answer of a unary call, all answers of a stream.

        `parts` are the messages of a client stream. `node`: the call is for another node, to which this one hands it on.
        Raises TalosError; `failure.code` is the gRPC code of the node,
        `NOT_SENT` when the connection was gone before anything was sent, and '' when the node gave none.
        """
        if call.write and self._check:
            raise CheckModeWrite(f"{call.rpc} would be sent in check mode")
        sending = self._send(call, request, parts, node)
        return await (self._writes.whole(sending) if call.write else sending)

    async def _send(self, call: Call, request: Any, parts: Iterable[Any], node: str) -> list[Any]:
        upstream = self._bridge.upstream
        if upstream.gone:
            raise self._lost(call, upstream.error, "NOT_SENT")
        deadline: float = getattr(self._timing, call.deadline)
        kind = method(call.service, call.method)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(deadline + _GRACE):
                answers = await self._exchange(kind, request, parts, deadline, (("node", node),) if node else ())
        except TimeoutError:
            raise failed("TimedOut", upstream.node, seconds=deadline, rpc=call.rpc) from None
        except grpc.aio.AioRpcError as error:
            late = loop.time() - begun >= 0.95 * deadline
            raise self._refused(call, error.code().name, error.details() or "", deadline, late) from None
        try:
            return [kind.response.FromString(answer) for answer in answers]
        except (DecodeError, ValueError) as error:
            raise failed("AnswerInvalid", upstream.node, detail=str(error), rpc=call.rpc) from None

    async def receive(self, call: Call, request: Any) -> AsyncIterator[Any]:
        """The answers of a stream one by one, however many there are: nothing is kept of them, and the node is read no faster than its
        answers are taken. Raises TalosError as `send` does, `TimedOut` also where nothing came for the deadline of a call."""
        upstream, kind = self._bridge.upstream, method(call.service, call.method)
        if upstream.gone:
            raise self._lost(call, upstream.error, "NOT_SENT")
        deadline, silence, loop = float(getattr(self._timing, call.deadline)), self._timing.call, asyncio.get_running_loop()
        stream = self._bridge.channel.unary_stream(kind.path)(request.SerializeToString(), timeout=deadline)
        begun = loop.time()
        quiet = Silence(loop, silence, stream.cancel)
        try:
            while True:
                quiet.wait()
                answer = await stream.read()
                quiet.heard()
                if answer is grpc.aio.EOF:
                    break
                upstream.taken()
                yield kind.response.FromString(answer)
            if await stream.code() is not grpc.StatusCode.OK:
                raise self._refused(call, (await stream.code()).name, await stream.details() or "", deadline, False)
        except asyncio.CancelledError:
            if not stream.cancelled() or _told_to_stop():
                raise
            raise failed("TimedOut", upstream.node, seconds=silence, rpc=call.rpc) from None
        except grpc.aio.AioRpcError as error:
            late = loop.time() - begun >= 0.95 * deadline
            raise self._refused(call, error.code().name, error.details() or "", deadline, late) from None
        except (DecodeError, ValueError) as error:
            raise failed("AnswerInvalid", upstream.node, detail=str(error), rpc=call.rpc) from None
        finally:
            quiet.end()
            stream.cancel()

    async def _exchange(self, kind: Method, request: Any, parts: Iterable[Any], deadline: float, metadata: tuple[tuple[str, str], ...]) -> list[bytes]:
        """The answers as bytes: grpcio would write a traceback where one cannot be parsed."""
        channel = self._bridge.channel
        message = request.SerializeToString() if request is not None else b""
        if kind.kind == "unary":
            return [await channel.unary_unary(kind.path)(message, timeout=deadline, metadata=metadata)]
        if kind.kind == "client-stream":
            giving = _Giving(parts)
            try:
                return [await channel.stream_unary(kind.path)(giving.serialized(), timeout=deadline, metadata=metadata)]
            except asyncio.CancelledError:
                if giving.error is None or _told_to_stop():
                    raise
                raise giving.error from None
        answers: list[bytes] = []
        room = self._answer_limit
        stream = channel.unary_stream(kind.path)(message, timeout=deadline, metadata=metadata)
        try:
            async for answer in stream:
                answers.append(answer)
                room -= len(answer)
                if room < 0 or len(answers) > STREAM_LIMIT:
                    raise failed("AnswerTooLarge", self._bridge.upstream.node, rpc=kind.path)
        finally:
            stream.cancel()
        return answers

    def _refused(self, call: Call, code: str, details: str, deadline: float, late: bool) -> TalosError:
        node = self._bridge.upstream.node
        if details.startswith("failed to connect to all addresses"):
            details = ""  # it tried our Unix socket anew, which is gone with the connection
        if any(mark in details for mark in _TOO_LARGE):
            return failed("AnswerTooLarge", node, detail=details, rpc=call.rpc)
        if any(mark in details for mark in _NOT_GRPC):
            return failed("NotTalos", node, detail=details, rpc=call.rpc)
        if code == "DEADLINE_EXCEEDED" or (code == "CANCELLED" and late):
            return failed("TimedOut", node, seconds=deadline, detail=details, rpc=call.rpc, code=code)
        if code in ("UNAVAILABLE", "CANCELLED", "INTERNAL", "UNKNOWN") and self._bridge.upstream.gone:
            return self._lost(call, self._bridge.upstream.error, code, details)
        return failed(_CODES.get(code, "CallFailed"), node, detail=details, rpc=call.rpc, code=code)

    def _lost(self, call: Call, why: TalosError | None, code: str, details: str = "") -> TalosError:
        """The connection went in mid-call: by what ended it when that is known, else `ConnectionLost`."""
        reason = why.reason if why is not None and why.reason != "NotTls" else "ConnectionLost"
        told = clean.text(f"{details} {why.detail if why is not None else ''}", 4096)
        return failed(reason, self._bridge.upstream.node, detail=told, rpc=call.rpc, code=code)


class _Giving:
    """The messages of a client stream. What is raised where they come from would be swallowed by grpcio, which then only cancels the call."""

    def __init__(self, parts: Iterable[Any]) -> None:
        self._parts = parts
        self.error: Exception | None = None

    def serialized(self) -> Iterator[bytes]:
        try:
            for part in self._parts:
                yield part.SerializeToString()
        except Exception as error:
            self.error = error
            raise


def _told_to_stop() -> bool:
    """Whether it is this very task that somebody cancels, and not a call in it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
