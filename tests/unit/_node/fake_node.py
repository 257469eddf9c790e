# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small node for the tests of the transport: TLS by OpenSSL in front of a grpcio server, answers as the test says."""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile

import grpc
import grpc.aio

from ansible_collections.ichor.talos.plugins.module_utils._node import messages


#: Where the fake node has its own sockets; None for the usual place.
FOLDERS = None


class Refusal(Exception):
    """What a handler raises to answer with a gRPC status."""

    def __init__(self, code, details=""):
        super().__init__(code, details)
        self.code = code
        self.details = details


class FakeNode:
    """`answers` maps a path to a function from the request (a list of them for an upload) to one message, or a list of
    them for a stream; raise Refusal for a status.

    `calls` lists the paths that arrived, `connections` counts TLS handshakes that were completed, `bytes_in` what was
    decrypted. `raw(reader, writer)` speaks in the place of gRPC, whatever it says.
    Without `client_ca` it is a node in maintenance mode, else one that requires a client certificate.
    """

    def __init__(self, certificate, key, answers=None, client_ca=None, maximum=ssl.TLSVersion.TLSv1_3, alpn=("h2",), raw=None):
        self.raw = raw
        self.answers = answers or {}
        self.calls = []
        self.connections = 0
        self.bytes_in = 0
        self.port = 0
        self.tasks = set()
        self.open = set()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.maximum_version = maximum
        self.context.num_tickets = 0
        if alpn:
            self.context.set_alpn_protocols(list(alpn))
        with tempfile.TemporaryDirectory() as folder:
            for file, text in (("c", certificate), ("k", key)):
                with open(os.path.join(folder, file), "w", encoding="ascii") as out:
                    out.write(text)
            self.context.load_cert_chain(os.path.join(folder, "c"), os.path.join(folder, "k"))
        if client_ca:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(cadata=client_ca)

    async def __aenter__(self):
        self.folder = tempfile.TemporaryDirectory(dir=FOLDERS)
        path = os.path.join(self.folder.name, "grpc")
        if self.raw is not None:
            self.grpc = None
            self.backend = await asyncio.start_unix_server(self.raw, path)
        else:
            self.grpc = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
            self.grpc.add_generic_rpc_handlers((_Handler(self),))
            self.grpc.add_insecure_port(f"unix:{path}")
            await self.grpc.start()
        self.path = path
        self.server = await asyncio.get_running_loop().create_server(lambda: _Tls(self), "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *dummy):
        self.server.close()
        self.drop()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.grpc is None:
            self.backend.close()
        else:
            await self.grpc.stop(0)
        self.folder.cleanup()

    def drop(self):
        """Cut every connection."""
        for connection in list(self.open):
            connection.transport.abort()


class _Tls(asyncio.Protocol):
    """The node's end of TLS. asyncio's own keeps alerts to itself when a handshake fails; a node sends them."""

    def __init__(self, node):
        self.node = node
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = node.context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.shaken = False
        self.back = None
        self.early = b""

    def connection_made(self, transport):
        self.transport = transport
        self.node.open.add(self)

    def connection_lost(self, exc):
        self.node.open.discard(self)
        if self.back is not None:
            self.back.transport.abort()

    def data_received(self, data):
        self.incoming.write(data)
        try:
            if not self.shaken:
                self.tls.do_handshake()
                self.shaken = True
                self.node.connections += 1
                task = asyncio.ensure_future(self.pump())
                self.node.tasks.add(task)
                task.add_done_callback(self.node.tasks.discard)
            while data := self.tls.read(65536):
                self.node.bytes_in += len(data)
                if self.back is None:
                    self.early += data
                else:
                    self.back.write(data)
        except ssl.SSLWantReadError:
            self.flush()
        except ssl.SSLError:
            self.flush()
            self.transport.close()
        else:
            self.flush()
            self.transport.close()

    def flush(self):
        if data := self.outgoing.read():
            self.transport.write(data)

    async def pump(self):
        reader, self.back = await asyncio.open_unix_connection(self.node.path)
        try:
            self.back.write(self.early)
            while data := await reader.read(65536):
                self.tls.write(data)
                self.flush()
        finally:
            self.transport.abort()
            self.back.transport.abort()


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, node):
        self.node = node

    def service(self, details):
        path = details.method
        service, name = path.strip("/").split("/")
        kind = messages.method(service, name)

        async def unary(request, context):
            return (await self.answer(path, kind, request, context))[0]

        async def stream(request, context):
            for message in await self.answer(path, kind, request, context):
                yield message

        async def uploaded(requests, context):
            return (await self.answer(path, kind, [kind.request.FromString(request) async for request in requests], context))[0]

        if kind.kind == "server-stream":
            return grpc.unary_stream_rpc_method_handler(stream)
        if kind.kind == "client-stream":
            return grpc.stream_unary_rpc_method_handler(uploaded)
        return grpc.unary_unary_rpc_method_handler(unary)

    async def answer(self, path, kind, request, context):
        self.node.calls.append(path)
        answer = self.node.answers.get(path)
        if answer is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "not in this test")
        try:
            given = answer(request if isinstance(request, list) else kind.request.FromString(request))
            if asyncio.iscoroutine(given):
                given = await given
        except Refusal as refusal:
            await context.abort(grpc.StatusCode[refusal.code], refusal.details)
        given = given if isinstance(given, list) else [given]
        return [one if isinstance(one, bytes) else one.SerializeToString() for one in given]


def resource(spec, identity="x"):
    """A COSI resource around a spec."""
    made = messages.message_class("cosi.resource.Resource")()
    made.metadata.id = identity
    made.spec.proto_spec = spec if isinstance(spec, bytes) else spec.SerializeToString()
    return made


def state(resources):
    """Get and List answers from {type: {id: spec}}; a type that is not there is one that the node does not know."""
    def specs_of(request):
        found = resources.get(request.type)
        if found is None:
            raise Refusal("PERMISSION_DENIED", f'resource type "{request.type}" is not supported')
        if isinstance(found, Refusal):
            raise found
        return found

    def get(request):
        found = specs_of(request)
        if request.id not in found:
            raise Refusal("NOT_FOUND", f"resource {request.type}({request.namespace}/{request.id}@undefined) doesn't exist")
        return messages.method("cosi.resource.State", "Get").response(resource=resource(found[request.id], request.id))

    def listing(request):
        return [messages.method("cosi.resource.State", "List").response(resource=resource(spec, identity))
                for identity, spec in specs_of(request).items()]

    return {"/cosi.resource.State/Get": get, "/cosi.resource.State/List": listing}
