# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineService: what a node is and does — version, services, events, files, META, client certificates."""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import tarfile
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.lab import certificates, status
from tests.lab.events import Event, is_xid, xid
from tests.lab.status import Refusal
from tests.lab.wire import message

if TYPE_CHECKING:
    from tests.lab.director import Context

_SHAS = {12: "e326fe9f", 13: "3ebd10a7", 14: "7a84d742"}
_GO = {12: "go1.25.5", 13: "go1.26.8", 14: "go1.26.8"}
_RESTARTABLE = ("kubelet",)
_TAILS = "WithTailDuration can't be specified at the same time with WithTailEvents or WithTailID"


def need_control_plane(context: Context, what: str) -> None:
    boot = context.boot
    if boot.active is None or not boot.active.control_plane:
        raise Refusal(status.UNIMPLEMENTED, f"{what} is only available on control plane nodes")


async def version(context: Context, request: Any) -> Any:
    answer = message("machine.VersionResponse")()
    item = answer.messages.add()
    info = item.version
    info.tag, info.sha, info.go_version, info.os, info.arch = (
        context.node.version, _SHAS[context.node.minor], _GO[context.node.minor], "linux", context.node.hardware.arch
    )
    item.platform.name, item.platform.mode = context.node.hardware.platform, "metal"
    if context.boot.configured:
        item.features.rbac = True
    return answer


async def hostname(context: Context, request: Any) -> Any:
    answer = message("machine.HostnameResponse")()
    answer.messages.add(hostname=context.boot.hostname or "talos")
    return answer


async def service_list(context: Context, request: Any) -> Any:
    answer = message("machine.ServiceListResponse")()
    item = answer.messages.add()
    for unused, service in sorted(context.boot.services.all.items()):
        item.services.append(service.info())
    return answer


def _service(context: Context, name: str) -> None:
    if context.boot.services.get(name) is None:
        raise Refusal(status.UNKNOWN, f'service "{name}" not defined')


async def service_restart(context: Context, request: Any) -> Any:
    _service(context, request.id)
    if request.id not in _RESTARTABLE and not request.id.startswith("ext-"):
        raise Refusal(status.UNKNOWN, f'service "{request.id}" doesn\'t support restart operation via API')
    services = context.boot.services
    services.stop(request.id)
    services.start(request.id)
    answer = message("machine.ServiceRestartResponse")()
    answer.messages.add(resp=f'Service "{request.id}" restarted')
    return answer


async def service_start(context: Context, request: Any) -> Any:
    _service(context, request.id)
    raise Refusal(status.UNKNOWN, f'service "{request.id}" doesn\'t support start operation via API')


async def service_stop(context: Context, request: Any) -> Any:
    _service(context, request.id)
    raise Refusal(status.UNKNOWN, f'service "{request.id}" doesn\'t support stop operation via API')


async def events(context: Context, request: Any) -> None:
    """The hello event first; then, or instead, what is wrong with the arguments."""
    hello = message("machine.Event")(id=xid(), actor_id=request.with_actor_id)
    hello.data.SetInParent()
    context.send(hello)
    log = context.boot.events
    queue = log.listen()
    try:
        for event in _tail(log.buffer, request):
            _send(context, event, request.with_actor_id)
        while True:
            following = await queue.get()
            if following is None:
                return
            _send(context, following, request.with_actor_id)
    finally:
        log.forget(queue)


def _send(context: Context, event: Event, actor: str) -> None:
    if not actor or event.actor == actor:
        context.send(event.encode())


def _tail(buffer: Iterable[Event], request: Any) -> list[Event]:
    listed = list(buffer)
    given = sum(1 for value in (request.tail_events, request.tail_id, request.tail_seconds) if value)
    if request.tail_id and not is_xid(request.tail_id):
        raise Refusal(status.UNKNOWN, "error parsing tail_id: xid: invalid ID")
    if given > 1:
        raise Refusal(status.UNKNOWN, _TAILS)
    if request.tail_events:
        return listed if request.tail_events < 0 else listed[-request.tail_events:]
    if request.tail_id:
        known = [index for index, event in enumerate(listed) if event.id == request.tail_id]
        return listed[known[0] + 1:] if known else listed
    if request.tail_seconds:
        first = time.time() - request.tail_seconds
        return [event for event in listed if event.time >= first]
    return []


async def meta_write(context: Context, request: Any) -> Any:
    if request.key > 255:
        raise Refusal(status.INVALID_ARGUMENT, "key must be a uint8")
    context.node.storage.meta[request.key] = request.value
    context.boot.refresh()
    answer = message("machine.MetaWriteResponse")()
    answer.messages.add()
    return answer


async def meta_delete(context: Context, request: Any) -> Any:
    if request.key > 255:
        raise Refusal(status.INVALID_ARGUMENT, "key must be a uint8")
    if context.node.storage.meta.pop(request.key, None) is None:
        raise Refusal(status.NOT_FOUND, "meta key not found")
    context.boot.refresh()
    answer = message("machine.MetaDeleteResponse")()
    answer.messages.add()
    return answer


async def read(context: Context, request: Any) -> None:
    """Only what clients of Talos read: the boot id, and the files of a machine that is named so."""
    files = {"/proc/sys/kernel/random/boot_id": context.boot.id + "\n", "/proc/cmdline": context.node.hardware.cmdline + "\n"}
    content = files.get(request.path)
    if content is None:
        raise Refusal(status.NOT_FOUND, f"stat {request.path}: no such file or directory")
    context.send(message("common.Data")(bytes=content.encode()))


async def client_configuration(context: Context, request: Any) -> Any:
    need_control_plane(context, "generate client configuration")
    seconds = request.crt_ttl.seconds + request.crt_ttl.nanos / 1e9
    if seconds <= 0:
        raise Refusal(status.INVALID_ARGUMENT, "crt_ttl should be positive")
    authority, config = context.boot.authority, context.boot.active
    if authority is None or authority.key is None or config is None:
        raise Refusal(status.UNKNOWN, "the issuing CA is not known")
    leaf = certificates.issue_client(authority, context.node.now(), list(request.roles), start=timedelta(0), lifetime=timedelta(seconds=seconds))
    crt, key = certificates.certificate_pem(leaf.certificate), certificates.talos_key_pem(leaf.key)
    ca = certificates.certificate_pem(authority.certificate)
    answer = message("machine.GenerateClientConfigurationResponse")()
    answer.messages.add(ca=ca, crt=crt, key=key, talosconfig=talosconfig(config.cluster_name, ca, crt, key, list(request.roles)).encode())
    return answer


def talosconfig(cluster: str, ca: bytes, crt: bytes, key: bytes, roles: list[str], endpoints: Iterable[str] = ()) -> str:
    """A talosconfig with one context, named as Talos names it."""
    name = f"{roles[0]}@{cluster}" if len(roles) == 1 and roles[0] != "os:admin" else cluster
    listed = "".join(f"            - {endpoint}\n" for endpoint in endpoints)
    encoded = {label: base64.b64encode(data).decode() for label, data in (("ca", ca), ("crt", crt), ("key", key))}
    lines = f"context: {name}\ncontexts:\n    {name}:\n        endpoints:{' []' if not listed else ''}\n{listed}"
    return lines + "".join(f"        {label}: {value}\n" for label, value in encoded.items())


async def kubeconfig(context: Context, request: Any) -> None:
    need_control_plane(context, "kubeconfig")
    config = context.boot.active
    assert config is not None
    name, endpoint = config.cluster_name, config.endpoint
    text = (
        f"apiVersion: v1\nkind: Config\nclusters:\n    - name: {name}\n      cluster:\n        server: {endpoint}\nusers:\n    - name: admin@{name}\n"
        f"      user: {{}}\ncontexts:\n    - name: admin@{name}\n      context:\n        cluster: {name}\n        user: admin@{name}\n"
        f"current-context: admin@{name}\n"
    ).encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("kubeconfig")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    context.send(message("common.Data")(bytes=gzip.compress(packed.getvalue(), mtime=0)))
    await asyncio.sleep(0)


HANDLERS = {
    "machine.MachineService": {
        "Version": version, "Hostname": hostname, "ServiceList": service_list, "ServiceRestart": service_restart, "ServiceStart": service_start,
        "ServiceStop": service_stop, "Events": events, "MetaWrite": meta_write, "MetaDelete": meta_delete, "Read": read,
        "GenerateClientConfiguration": client_configuration, "Kubeconfig": kubeconfig,
    }
}
