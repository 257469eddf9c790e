# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The maintenance service of 1.12: a server of its own that answers a few calls and refuses the rest as not implemented."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from tests.lab import api, handlers, status
from tests.lab.apply import AUTO, NO_REBOOT, REBOOT, STAGED, TRY
from tests.lab.calllog import digest
from tests.lab.machineconfig import ConfigError, load
from tests.lab.status import Refusal
from tests.lab.validation import validate
from tests.lab.wire import message, method

if TYPE_CHECKING:
    from tests.lab.director import Context

_REFUSED_A = frozenset(("Version", "Upgrade", "Reset", "MetaWrite", "MetaDelete"))
_TEXT_A = "API is not implemented in maintenance mode"
_CLIENT = "client configuration (talosconfig) can't be generated in the maintenance mode"
_MODES = {NO_REBOOT: "no-reboot", STAGED: "staged"}
_SERVICES = frozenset(("machine.MachineService", "storage.StorageService", "cosi.resource.State"))


async def serve(context: Context, service: str, name: str) -> None:
    if service not in _SERVICES:
        raise Refusal(status.UNIMPLEMENTED, f"unknown service {service}")
    if api.find(12, service, name) is None:
        raise Refusal(status.UNIMPLEMENTED, f"unknown method {name} for service {service}")
    found = method(service, name)
    request = await _request(context, found.request) if found is not None and not found.client_streaming else None
    if service == "machine.MachineService" and name != "ApplyConfiguration":
        if name in _REFUSED_A:
            raise Refusal(status.UNIMPLEMENTED, _TEXT_A)
        if name == "GenerateClientConfiguration":
            raise Refusal(status.UNIMPLEMENTED, _CLIENT)
        raise Refusal(status.UNIMPLEMENTED, f"method {name} not implemented")
    if service == "cosi.resource.State" and name not in ("Get", "List", "Watch"):
        raise Refusal(status.PERMISSION_DENIED, "write access is not allowed")
    if name == "ApplyConfiguration":
        answer = await _apply(context, request)
    else:
        handler = handlers.find(service, name)
        if handler is None:
            raise Refusal(status.UNIMPLEMENTED, f"method {name} not implemented")
        answer = await handler(context, request)
    await context.node.faults.before_answer(context.call)
    if answer is not None:
        context.send(answer)


async def _request(context: Context, kind: Any) -> Any:
    raw = await context.receive()
    if raw is None:
        raise Refusal(status.INTERNAL, "EOF")
    try:
        return kind.FromString(raw)
    except DecodeError as error:
        raise Refusal(status.INTERNAL, "grpc: error unmarshalling request: unexpected EOF") from error


async def _apply(context: Context, request: Any) -> Any:
    boot, node = context.boot, context.node
    raw: bytes = request.data
    fields = {**digest(raw), "mode": int(request.mode), "dry_run": bool(request.dry_run)}
    context.call.log_fields.update(fields)
    node.world.log.add("config", node.name, peer=context.call.peer, credentials="none", **fields)
    mode = int(request.mode)
    if mode in _MODES:
        raise Refusal(status.UNIMPLEMENTED, f"apply configuration --mode='{_MODES[mode]}' is not supported in maintenance mode")
    if mode not in (REBOOT, AUTO, TRY):
        raise Refusal(status.UNIMPLEMENTED, f"apply configuration --mode='{mode}' is not supported in maintenance mode")
    try:
        config = load(raw, 12)
    except ConfigError as error:
        raise Refusal(status.UNKNOWN, f"failed to parse config: {error}") from error
    problem = ""
    if node.world.oracle is not None:
        problem = node.world.oracle.ask(node.version, raw, False)[0]
    problem = problem or validate(config, False, node.version) or ""
    if problem:
        raise Refusal(status.INVALID_ARGUMENT, f"configuration validation failed: {problem}")
    answer = message("machine.ApplyConfigurationResponse")()
    if request.dry_run:
        answer.messages.add(mode_details="Dry run summary:\nNode is running in maintenance mode and does not have a config yet")
        return answer
    answer.messages.add()
    boot.configure(config, config)
    node.note("applied", mode=mode, sha256=fields["sha256"], maintenance=True)
    return answer
