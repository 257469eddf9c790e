# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Baseline: one node after the other, a TLS handshake by `ssl` and the same calls over the library `h2`."""

from __future__ import annotations

import base64
import json
import resource
import socket
import ssl
import sys
import time

import h2.config
import h2.connection
import h2.events


def ask(address: str, port: int, context: ssl.SSLContext, calls: list[tuple[str, bytes]]) -> int:
    """Bytes of all answers of one node."""
    with socket.create_connection((address, port), timeout=20) as plain, context.wrap_socket(plain) as tls:
        http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        http.initiate_connection()
        for path, body in calls:
            stream = http.get_next_available_stream_id()
            http.send_headers(stream, [(":method", "POST"), (":scheme", "https"), (":authority", address), (":path", path),
                                       ("content-type", "application/grpc"), ("te", "trailers"), ("grpc-timeout", "20S")])
            http.send_data(stream, b"\0" + len(body).to_bytes(4, "big") + body, end_stream=True)
        tls.sendall(http.data_to_send())
        ended = size = 0
        while ended < len(calls):
            for event in http.receive_data(tls.recv(65536)):
                if isinstance(event, h2.events.DataReceived):
                    size += len(event.data)
                    http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                ended += isinstance(event, h2.events.StreamEnded)
            tls.sendall(http.data_to_send())
        return size


def main() -> None:
    plan = json.load(sys.stdin)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    if "client" in plan:
        context.load_verify_locations(plan["authority"])
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(plan["client"])
    calls = [(path, base64.b64decode(body)) for path, body in plan["calls"]]
    began, cpu = time.perf_counter(), time.process_time()
    size = sum(ask(address, plan["port"], context, calls) for address in plan["addresses"])
    print(json.dumps({"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu, "bytes": size,
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


main()
