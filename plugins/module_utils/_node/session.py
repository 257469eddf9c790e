# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One connection to one node: the typed reads and the few writes (the port `Session`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from .._model.errors import TalosError
from .._model.hardware import permanent_macs
from .._model.identity import Identity, canonical_uuid
from .._model.observations import (
    ApplyReply, Certificate, Disk, Endpoint, EtcdAlarm, EtcdMember, EtcdStatus, Link, NodeFacts, Partition, ServiceState, StageReading,
)
from .._model.observed import Absent, Observed, Present, Unknown, value_or
from . import clean, cosi, reads
from .caller import Caller
from .calls import MACHINE, call
from .failures import failed
from .messages import enum_name, message_class, method

_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
#: How much of a snapshot is handed on at once, in bytes.
_PIECE = 256 * 1024
_MODES = ("AUTO", "NO_REBOOT", "STAGED")


class NodeSession:
    """See `_model.ports.Session`. Made by `nodes.TalosNodes`, which also closes it."""

    def __init__(self, caller: Caller, certificate: Certificate, maintenance: bool) -> None:
        self._caller = caller
        self._certificate = certificate
        self._maintenance = maintenance

    @property
    def endpoint(self) -> Endpoint:
        return self._caller.node

    @property
    def certificate(self) -> Certificate:
        return self._certificate

    @property
    def maintenance(self) -> bool:
        return self._maintenance

    async def identity(self) -> Identity:
        """SMBIOS UUID and serial, permanent MACs. What the node does not have is ''; what cannot be read is raised."""
        information, found = await asyncio.gather(cosi.get(self._caller, cosi.SYSTEM_INFORMATION), self.links())
        return self._identity(information, found)

    async def facts(self) -> NodeFacts:
        identity, found_links, stage, rest = await asyncio.gather(
            cosi.get(self._caller, cosi.SYSTEM_INFORMATION), self.links(), self._observed_stage(), asyncio.gather(
                cosi.items(self._caller, cosi.DISKS), cosi.items(self._caller, cosi.DISCOVERED_VOLUMES),
                cosi.get(self._caller, cosi.VERSION), cosi.get(self._caller, cosi.SECURITY_STATE),
                cosi.get(self._caller, cosi.HOSTNAME)))
        found_disks, volumes, version, security, hostname = rest
        return NodeFacts(
            endpoint=self.endpoint,
            certificate=self.certificate,
            identity=self._identity(identity, found_links),
            stage=stage,
            disks=_disks(found_disks, volumes),
            links=found_links,
            partitions=_partitions(volumes),
            talos_version=clean.text(version.value.version) if isinstance(version, Present) else "",
            secure_boot=Present(bool(security.value.secure_boot), security.source) if isinstance(security, Present) else security,
            hostname=clean.text(hostname.value.hostname) if isinstance(hostname, Present) else "",
        )

    async def stage(self) -> StageReading:
        """A node without MachineStatus (it has just started) is in stage `unknown`."""
        status, install = await asyncio.gather(
            cosi.get(self._caller, cosi.MACHINE_STATUS), cosi.get(self._caller, cosi.UNATTENDED_INSTALL))
        return reads.stage(cosi.needed(status, self._caller), cosi.needed(install, self._caller))

    async def disks(self) -> Observed[tuple[Disk, ...]]:
        found, volumes = await asyncio.gather(
            cosi.items(self._caller, cosi.DISKS), cosi.items(self._caller, cosi.DISCOVERED_VOLUMES))
        return _disks(found, volumes)

    async def links(self) -> Observed[tuple[Link, ...]]:
        found = await cosi.items(self._caller, cosi.LINKS)
        return Present(reads.links(found.value), found.source) if isinstance(found, Present) else found

    async def partitions(self) -> Observed[tuple[Partition, ...]]:
        return _partitions(await cosi.items(self._caller, cosi.DISCOVERED_VOLUMES))

    async def machine_config(self, persistent: bool = False) -> Observed[bytes]:
        found = await cosi.get(self._caller, cosi.MACHINE_CONFIG, "persistent" if persistent else "v1alpha1")
        return Present(bytes(found.value.yaml_marshalled), found.source) if isinstance(found, Present) else found

    async def boot_id(self) -> Observed[str]:
        """From the BootID resource (1.14), else from the kernel's file, which needs os:admin."""
        found = await cosi.get(self._caller, cosi.BOOT_ID)
        if isinstance(found, Present):
            return Present(clean.text(found.value.boot_id), found.source)
        if self._maintenance or isinstance(found, Unknown):
            return found
        try:
            answers = await self._caller.send(call(MACHINE, "Read"), method(MACHINE, "Read").request(path=_BOOT_ID_FILE))
        except TalosError as error:
            return Unknown(error.reason, error.text, _BOOT_ID_FILE)
        content = b"".join(answer.bytes for answer in answers).decode("ascii", "replace")
        return Present(clean.text(content), _BOOT_ID_FILE) if content.strip() else Absent(_BOOT_ID_FILE)

    async def hostname(self) -> Observed[str]:
        found = await cosi.get(self._caller, cosi.HOSTNAME)
        return Present(clean.text(found.value.hostname), found.source) if isinstance(found, Present) else found

    async def version(self) -> Observed[str]:
        found = await cosi.get(self._caller, cosi.VERSION)
        return Present(clean.text(found.value.version), found.source) if isinstance(found, Present) else found

    async def services(self) -> tuple[ServiceState, ...]:
        return reads.services((await self._caller.send(call(MACHINE, "ServiceList"), None))[0])

    async def etcd_members(self, local: bool) -> tuple[EtcdMember, ...]:
        """As this node's own etcd sees them (`local`), else as any control plane answers. Before the bootstrap it hangs."""
        request = method(MACHINE, "EtcdMemberList").request(query_local=local)
        return reads.etcd_members((await self._caller.send(call(MACHINE, "EtcdMemberList"), request))[0])

    async def etcd_status(self, node: str = "") -> EtcdStatus:
        status = reads.etcd_status((await self._caller.send(call(MACHINE, "EtcdStatus"), None, node=node))[0])
        if status is None:
            raise failed("AnswerInvalid", self.endpoint, rpc="MachineService/EtcdStatus")
        return status

    async def etcd_alarms(self) -> tuple[EtcdAlarm, ...]:
        return reads.etcd_alarms((await self._caller.send(call(MACHINE, "EtcdAlarmList"), None))[0])

    async def apply(self, config: bytes, mode: str) -> ApplyReply:
        if mode not in _MODES:
            raise ValueError(f"mode {mode!r} is none of {', '.join(_MODES)}")
        kind = method(MACHINE, "ApplyConfiguration")
        request = kind.request(data=config, mode=mode)
        try:
            answers = await self._caller.send(call(MACHINE, "ApplyConfiguration"), request)
        except TalosError as error:
            raise self._apply_refusal(error) from None
        if not answers[0].messages:
            raise failed("AnswerInvalid", self.endpoint, rpc="MachineService/ApplyConfiguration")
        reply = answers[0].messages[0]
        return ApplyReply(mode=enum_name("machine.ApplyConfigurationRequest.Mode", reply.mode),
                          details=clean.text(reply.mode_details, 4096), warnings=clean.texts(reply.warnings))

    async def etcd_snapshot(self) -> AsyncIterator[bytes]:
        """Talos sends a kilobyte a message; here they come as pieces of a size that is worth a write."""
        piece = bytearray()
        async for part in self._caller.receive(call(MACHINE, "EtcdSnapshot"), method(MACHINE, "EtcdSnapshot").request()):
            piece += part.bytes
            if len(piece) >= _PIECE:
                yield bytes(piece)
                piece.clear()
        if piece:
            yield bytes(piece)

    async def etcd_recover(self, pieces: Iterable[bytes]) -> None:
        kind = message_class("common.Data")
        await self._caller.send(call(MACHINE, "EtcdRecover"), None, parts=(kind(bytes=piece) for piece in pieces))

    async def bootstrap(self, recover: bool = False, unverified: bool = False) -> None:
        request = method(MACHINE, "Bootstrap").request(recover_etcd=recover, recover_skip_hash_check=unverified)
        try:
            await self._caller.send(call(MACHINE, "Bootstrap"), request)
        except TalosError as error:
            reason = {"FailedPrecondition": "BootstrapNotAvailable", "Unimplemented": "NotControlPlane"}.get(error.reason)
            if reason is None:
                raise
            raise failed(reason, self.endpoint, detail=error.detail, rpc=error.failure.rpc, code=error.failure.code) from None

    async def reboot(self) -> None:
        """The answer comes before anything has happened."""
        await self._caller.send(call(MACHINE, "Reboot"), method(MACHINE, "Reboot").request())

    async def etcd_remove_member(self, member: str) -> None:
        request = method(MACHINE, "EtcdRemoveMemberByID").request(member_id=int(member, 16))
        await self._caller.send(call(MACHINE, "EtcdRemoveMemberByID"), request)

    async def etcd_leave(self) -> None:
        """The node waits for a healthy etcd of its own, removes its member, stops etcd and deletes its data."""
        await self._caller.send(call(MACHINE, "EtcdLeaveCluster"), method(MACHINE, "EtcdLeaveCluster").request())

    async def reset(self, partitions: Sequence[str], graceful: bool = True) -> None:
        """With a restart: what is not named stays, and a member that is to leave etcd first (`graceful`) and cannot wipes nothing."""
        request = method(MACHINE, "Reset").request(graceful=graceful, reboot=True)
        for label in partitions:
            request.system_partitions_to_wipe.add(label=label, wipe=True)
        await self._caller.send(call(MACHINE, "Reset"), request)

    def _identity(self, information: Observed[Any], found: Observed[tuple[Link, ...]]) -> Identity:
        macs = permanent_macs(cosi.needed(found, self._caller) or ())
        spec = cosi.needed(information, self._caller)
        return Identity(macs=macs) if spec is None else Identity(canonical_uuid(spec.uuid), clean.text(spec.serial_number), macs)

    async def _observed_stage(self) -> Observed[StageReading]:
        try:
            return Present(await self.stage(), cosi.MACHINE_STATUS.type)
        except TalosError as error:
            return Unknown(error.reason, error.text, cosi.MACHINE_STATUS.type)

    def _apply_refusal(self, error: TalosError) -> TalosError:
        """INVALID_ARGUMENT says that the bytes are refused; the maintenance server of 1.12 has UNKNOWN for what it cannot parse."""
        code = error.failure.code
        if code == "INVALID_ARGUMENT" or (code == "UNKNOWN" and error.detail.startswith("failed to parse config")):
            return failed("ConfigRejected", self.endpoint, detail=error.detail, rpc=error.failure.rpc, code=code)
        return error


def _disks(found: Observed[reads.Items], volumes: Observed[reads.Items]) -> Observed[tuple[Disk, ...]]:
    if not isinstance(found, Present):
        return found
    known = None if isinstance(volumes, Unknown) else value_or(volumes, ())
    return Present(reads.disks(found.value, known), found.source)


def _partitions(volumes: Observed[reads.Items]) -> Observed[tuple[Partition, ...]]:
    if isinstance(volumes, Absent):
        # Talos lists every block device, blank ones too: a node that lists none has not looked yet.
        return Unknown("AnswerInvalid", "The node lists no block device at all, so it has not looked for its partitions yet.", volumes.source)
    if not isinstance(volumes, Present):
        return volumes
    found = reads.partitions(volumes.value)
    return Present(found, volumes.source) if found else Absent(volumes.source)
