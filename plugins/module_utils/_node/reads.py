# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From Talos's messages to observations: pure, cleaned and capped (design section 5)."""

from __future__ import annotations

from typing import Any

from .._model.observations import CONTENTS_UNKNOWN, STAGES, Disk, EtcdAlarm, EtcdMember, EtcdStatus, Link, Partition, ServiceState, StageReading
from . import clean
from .messages import enum_name

_ETHERNET = 1
_UP = 6
#: RuntimeUnattendedInstallPhase by number.
_INSTALL_PHASES = ("pending", "installing", "installed", "waiting-for-reboot", "failed")
#: What Talos's block prober calls a partition table; such a disk carries nothing by itself.
_TABLES = ("gpt", "dos", "mbr")

Items = tuple[tuple[str, Any], ...]


def disks(found: Items, volumes: Items | None) -> tuple[Disk, ...]:
    """Disks with what is on them (`volumes` None: not known). One with an ISO file system is what a machine was booted from."""
    on_disk: dict[str, list[Any]] = {}
    for dummy, volume in volumes or ():
        on_disk.setdefault(volume.parent_dev_path or volume.dev_path, []).append(volume)
    return tuple(
        _disk(name, spec, on_disk.get(spec.dev_path, []) if volumes is not None else None) for name, spec in clean.capped(found))


def _disk(name: str, spec: Any, volumes: list[Any] | None) -> Disk:
    bus_path = clean.text(spec.bus_path)
    transport = clean.text(spec.transport).lower()
    return Disk(
        name=clean.text(name), path=clean.text(spec.dev_path), size=spec.size, wwid=clean.text(spec.wwid),
        serial=clean.text(spec.serial), model=clean.text(spec.model), uuid=clean.text(spec.uuid), bus_path=bus_path,
        transport=transport, modalias=clean.text(spec.modalias), subsystem=clean.text(spec.sub_system),
        rotational=spec.rotational, readonly=spec.readonly, cdrom=spec.cdrom,
        usb=transport == "usb" or "/usb" in bus_path.lower(),
        boot_medium=any(volume.name == "iso9660" for volume in volumes or ()),
        symlinks=clean.texts(spec.symlinks),
        contents=CONTENTS_UNKNOWN if volumes is None else _contents(volumes),
    )


def _contents(volumes: list[Any]) -> tuple[str, ...]:
    """`STATE xfs` for each partition, the file system of a disk without any; a bare partition table where there is no more."""
    parts = [clean.text(f"{volume.partition_label} {volume.name or volume.label}") for volume in volumes if volume.parent_dev_path]
    whole = [clean.text(volume.name) for volume in volumes if not volume.parent_dev_path]
    named = [text or "partition" for text in parts] + [text for text in whole if text and (text not in _TABLES or not parts)]
    return tuple(named[:64])


def partitions(found: Items) -> tuple[Partition, ...]:
    """The partitions among the discovered volumes; whole disks are not."""
    return tuple(
        Partition(device=clean.text(spec.dev_path or name), parent=clean.text(spec.parent_dev_path),
                  label=clean.text(spec.partition_label), filesystem=clean.text(spec.name), size=spec.size)
        for name, spec in clean.capped(found) if spec.parent_dev_path or spec.partition_index)


def links(found: Items) -> tuple[Link, ...]:
    """Links; physical are Ethernet ones without a kind (a bond, bridge, VLAN, dummy or veth has one)."""
    return tuple(
        Link(name=clean.text(name), permanent_mac=clean.mac(spec.permanent_addr), mac=clean.mac(spec.hardware_addr),
             physical=spec.type == _ETHERNET and not spec.kind, up=spec.link_state or spec.operational_state == _UP,
             speed_megabits=max(0, spec.speed_megabits), bus_path=clean.text(spec.bus_path), driver=clean.text(spec.driver))
        for name, spec in clean.capped(found))


def stage(status: Any, install: Any) -> StageReading:
    """MachineStatus and UnattendedInstallStatus, either None where the node has none. A stage nobody knows is `unknown`."""
    phase = ""
    if install is not None:
        phase = _INSTALL_PHASES[install.phase] if 0 <= install.phase < len(_INSTALL_PHASES) else "unknown"
    if status is None:
        return StageReading("unknown", unattended_install=phase)
    unmet = (f"{condition.name}: {condition.reason}" for condition in status.status.unmet_conditions)
    return StageReading(
        stage=STAGES[status.stage] if 0 <= status.stage < len(STAGES) else "unknown",
        ready=status.status.ready, unmet=clean.texts(unmet), unattended_install=phase)


def services(answer: Any) -> tuple[ServiceState, ...]:
    """ServiceList of the node itself."""
    found = answer.messages[0].services if answer.messages else ()
    return tuple(
        ServiceState(id=clean.text(one.id), state=clean.text(one.state),
                     healthy=one.health.healthy if one.HasField("health") and not one.health.unknown else None,
                     message=clean.text(one.health.last_message))
        for one in clean.capped(found))


def etcd_members(answer: Any) -> tuple[EtcdMember, ...]:
    """EtcdMemberList."""
    found = answer.messages[0].members if answer.messages else ()
    return tuple(
        EtcdMember(id=member_id(one.id), name=clean.text(one.hostname), peer_urls=clean.texts(one.peer_urls),
                   client_urls=clean.texts(one.client_urls), learner=one.is_learner)
        for one in clean.capped(found))


def etcd_status(answer: Any) -> EtcdStatus | None:
    """EtcdStatus, None where the answer holds none."""
    if not answer.messages or not answer.messages[0].HasField("member_status"):
        return None
    found = answer.messages[0].member_status
    return EtcdStatus(member_id=member_id(found.member_id), leader=member_id(found.leader) if found.leader else "",
                      learner=found.is_learner, raft_index=found.raft_index, db_size=found.db_size, db_size_in_use=found.db_size_in_use,
                      errors=clean.texts(found.errors))


def etcd_alarms(answer: Any) -> tuple[EtcdAlarm, ...]:
    """EtcdAlarmList: what is raised now, by member."""
    found = answer.messages[0].member_alarms if answer.messages else ()
    return tuple(EtcdAlarm(member_id(one.member_id), enum_name("machine.EtcdMemberAlarm.AlarmType", one.alarm)) for one in clean.capped(found))


def member_id(number: int) -> str:
    """An etcd member's id as Talos and etcd print it."""
    return f"{number:016x}"
