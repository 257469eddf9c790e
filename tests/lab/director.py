# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""apid of a node: who the caller is, where a call goes (here, one other node, several), and what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from tests.lab import api, handlers, maintenance12, status
from tests.lab.calllog import roles_text
from tests.lab.connection import Call
from tests.lab.status import Refusal
from tests.lab.wire import message, method

if TYPE_CHECKING:
    from tests.lab.boot import Boot
    from tests.lab.node import Node

Sink = Callable[[bytes], None]


class Context:
    """One call on the node that answers it. `maintenance` is about the connection it came over."""

    def __init__(self, node: Node, call: Call, roles: frozenset[str], maintenance: bool, send: Sink, receive: Callable[[], Awaitable[bytes | None]]) -> None:
        self.node = node
        self.call = call
        self.roles = roles
        self.maintenance = maintenance
        self.send_bytes = send
        self.receive = receive

    @property
    def boot(self) -> Boot:
        boot = self.node.boot
        if boot is None:
            raise Refusal(status.UNAVAILABLE, "error reading from server: EOF")
        return boot

    @property
    def admin(self) -> bool:
        return api.ADMIN in self.roles

    def send(self, answer: Any) -> None:
        self.send_bytes(answer.SerializeToString())

    def send_all(self, answers: Sequence[Any]) -> None:
        """The same messages in one write, where nothing stands between this node and its caller."""
        if self.send_bytes == self.call.send:
            self.call.send_all([answer.SerializeToString() for answer in answers])
            return
        for answer in answers:
            self.send(answer)

    async def flow(self) -> None:
        await self.call.flow()


class Director:
    """Routes the calls of one node."""

    def __init__(self, node: Node) -> None:
        self.node = node

    async def serve(self, call: Call) -> None:
        node = self.node
        maintenance = call.connection.tls is not None and call.connection.tls.identity.client_authorities is None
        parts = api.split(call.path)
        if parts is None:
            raise Refusal(status.UNIMPLEMENTED, f'malformed method name: "{call.path}"')
        service, name = parts
        rpc = api.find(node.minor, service, name)
        kind = "write" if rpc is not None and rpc.write else "read"
        stage = node.boot.stage if node.boot is not None else "off"
        call.log_fields.update(kind=kind, stage=stage, state="maintenance" if maintenance else "configured")
        node.world.log.add(
            "call", node.name, peer=call.peer, rpc=call.path, kind=kind, stage=stage, state="maintenance" if maintenance else "configured",
            credentials="none" if maintenance else roles_text(sorted(call.roles)),
            target=",".join(call.values("node") + call.values("nodes")) or None,
        )
        await node.faults.at_call(call)
        if maintenance:
            call.roles = frozenset((api.READER,))
            context = Context(node, call, call.roles, True, call.send, call.receive)
            if node.minor == 12:
                await maintenance12.serve(context, service, name)
            else:
                await self.local(context, service, name)
            return
        roles = self._roles(call)
        nodes, target = call.values("nodes"), call.values("node")
        if call.values("proxyfrom"):
            nodes, target = [], []
        if target and len(target) != 1:
            raise Refusal(status.INVALID_ARGUMENT, "node metadata must be single-valued")
        forwards = node.boot is not None and node.boot.active is not None and node.boot.active.control_plane
        if not forwards:
            if target and self._is_local(target[0]):
                target = []
            if len(nodes) == 1 and self._is_local(nodes[0]):
                nodes = []
        if nodes:
            if service not in api.MULTI_SERVICES:
                raise Refusal(status.INVALID_ARGUMENT, f"one-2-many proxying is not supported for method {call.path}")
            if not forwards:
                raise Refusal(status.PERMISSION_DENIED, "no request forwarding")
            await self._fan_out(call, roles, nodes, service, name)
        elif target:
            if not forwards:
                raise Refusal(status.PERMISSION_DENIED, "no request forwarding")
            _check_target(target[0])
            other = self._resolve(target[0])
            await other.director.local(Context(other, call, roles, False, call.send, call.receive), service, name)
        else:
            await self.local(Context(node, call, roles, False, call.send, call.receive), service, name)

    def _roles(self, call: Call) -> frozenset[str]:
        """An impersonator may name its roles; from anybody else the metadata is overwritten."""
        named = call.values("talos-role")
        return frozenset(named) if api.IMPERSONATOR in call.roles and named else call.roles

    def _is_local(self, target: str) -> bool:
        boot = self.node.boot
        return target in self.node.addresses or (boot is not None and bool(target) and target == boot.hostname)

    def _resolve(self, target: str) -> Node:
        """The other node, over the lab's network; names do not resolve there."""
        if not _is_ip(target):
            raise Refusal(status.UNAVAILABLE, "name resolver error: produced zero addresses")
        other = self.node.world.at(target)
        if other is None or not self.node.world.reachable(self.node.name, other.name):
            text = f'connection error: desc = "transport: Error while dialing: dial tcp {target}:{self.node.port}: connect: connection refused"'
            raise Refusal(status.UNAVAILABLE, text)
        return other

    async def _fan_out(self, call: Call, roles: frozenset[str], targets: list[str], service: str, name: str) -> None:
        """`nodes`: answers one by one with the node's name; a failure becomes a message of its own, and the call is OK."""
        for target in targets:
            _check_target(target)
        found = method(service, name)
        streaming = found is not None and found.server_streaming
        request = None if found is not None and found.client_streaming else await call.receive()
        collected: list[bytes] = []

        async def ask(target: str) -> None:
            sent = [request]

            async def receive() -> bytes | None:
                return sent.pop() if sent else None

            def send(data: bytes) -> None:
                wrapped = _append_info(streaming, data, target)
                if streaming:
                    call.send(wrapped)
                else:
                    collected.append(wrapped)

            try:
                other = self._resolve(target)
                await other.director.local(Context(other, call, roles, False, send, receive), service, name)
            except Refusal as refusal:
                answer = _error(streaming, refusal, target)
                if streaming:
                    call.send(answer)
                else:
                    collected.append(answer)

        await asyncio.gather(*(ask(target) for target in targets))
        if not streaming:
            call.send(b"".join(collected))

    async def local(self, context: Context, service: str, name: str) -> None:
        """machined: does it exist, may the caller, and then the handler."""
        version = self.node.minor
        rpc = api.find(version, service, name)
        if rpc is None:
            if not api.knows_service(version, service):
                raise Refusal(status.UNIMPLEMENTED, f"unknown service {service}")
            raise Refusal(status.UNIMPLEMENTED, f"unknown method {name} for service {service}")
        handler = handlers.find(service, name)
        found = method(service, name)
        request = None
        if rpc.kind == "unary" and found is not None:
            request = await self._request(context, found.request)
        if not api.allowed(rpc, context.roles):
            raise Refusal(status.PERMISSION_DENIED, api.NOT_AUTHORIZED)
        if handler is None or found is None:
            raise Refusal(status.UNIMPLEMENTED, f"the lab does not know {service}/{name}")
        if rpc.kind == "server-stream":
            request = await self._request(context, found.request)
        answer = await handler(context, request)
        await self.node.faults.before_answer(context.call)
        if answer is not None:
            context.send(answer)

    async def _request(self, context: Context, kind: Any) -> Any:
        raw = await context.receive()
        if raw is None:
            raise Refusal(status.UNKNOWN, "EOF")
        try:
            return kind.FromString(raw)
        except DecodeError as error:
            empty = kind.DESCRIPTOR.full_name == "google.protobuf.Empty"
            text = "proto:\xa0cannot parse invalid wire-format data" if empty else "unexpected EOF"
            raise Refusal(status.INTERNAL, f"grpc: error unmarshalling request: {text}") from error


def _is_ip(text: str) -> bool:
    parts = text.split(".")
    return (len(parts) == 4 and all(part.isdigit() for part in parts)) or ":" in text


def _check_target(target: str) -> None:
    host, colon, port = target.rpartition(":")
    if not target or (colon and port.isdigit() and ":" not in host):
        raise Refusal(status.INTERNAL, f'invalid target "{target}"')


def _append_info(streaming: bool, data: bytes, target: str) -> bytes:
    """The node's name as metadata, appended as Talos does it: to the one message inside, or to the stream item."""
    info: bytes = message("common.Empty")(metadata=message("common.Metadata")(hostname=target)).SerializeToString()
    if streaming:
        return data + info
    position, shift, length = 1, 0, 0
    while True:
        byte = data[position]
        length |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            break
    body = data[position:] + info
    size, value = bytearray(), len(body)
    while value >= 0x80:
        size.append(value & 0x7F | 0x80)
        value >>= 7
    size.append(value)
    return data[:1] + bytes(size) + body


def _error(streaming: bool, refusal: Refusal, target: str) -> bytes:
    state = message("google.rpc.Status")(code=refusal.code, message=refusal.text)
    empty = message("common.Empty")(metadata=message("common.Metadata")(hostname=target, error=str(refusal), status=state))
    if streaming:
        return bytes(empty.SerializeToString())
    return bytes(message("common.EmptyResponse")(messages=[empty]).SerializeToString())
