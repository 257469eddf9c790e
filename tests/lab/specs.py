# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Specs of COSI resources: one table gives both the protobuf bytes and the YAML of each type.

A spec is a dict with the YAML's keys and words. Fields stand in the order of Talos's Go structures, which is the order of
the bytes as well as of the YAML lines.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any

from tests.lab import goyaml


@dataclass(frozen=True)
class Field:
    """One field. `kind` is str, int, bool, mac, ip, prefix, flags, map, an enum's table (dict) or a tuple of fields;
    `many` makes it a list, `omit` leaves a zero out of the YAML (the bytes never have zeros)."""

    key: str
    number: int
    kind: Any = "str"
    omit: bool = False
    many: bool = False


def _fields(text: str, **kinds: Any) -> tuple[Field, ...]:
    """`key:number[:kind]` words; a `?` after the key omits zeros, a `*` makes a list."""
    out = []
    for word in text.split():
        key, number, *rest = word.split(":")
        kind: Any = rest[0] if rest else "str"
        bare = key.rstrip("?*")
        out.append(Field(bare, int(number), kinds.get(kind, kind), "?" in key, "*" in key))
    return tuple(out)


STAGES = {"unknown": 0, "booting": 1, "installing": 2, "maintenance": 3, "running": 4, "rebooting": 5, "shutting down": 6, "resetting": 7, "upgrading": 8}
MACHINE_TYPES = {"unknown": 0, "init": 1, "controlplane": 2, "worker": 3}
_LINK_TYPES = {"ether": 1, "loopback": 772, "none": 65534}
_OPERATIONAL = {"unknown": 0, "notPresent": 1, "down": 2, "lowerLayerDown": 3, "testing": 4, "dormant": 5, "up": 6}
_PORTS = {"TwistedPair": 0, "AUI": 1, "MII": 2, "Fibre": 3, "BNC": 4, "DirectAttach": 5, "None": 239, "Other": 255}
_DUPLEX = {"Half": 0, "Full": 1, "Unknown": 255}
_FLAGS = {
    "UP": 1, "BROADCAST": 2, "DEBUG": 4, "LOOPBACK": 8, "POINTTOPOINT": 16, "RUNNING": 64, "NOARP": 128, "PROMISC": 256, "MASTER": 1024, "SLAVE": 2048,
    "MULTICAST": 4096, "LOWER_UP": 65536,
}
_FLAG_ORDER = ("UP", "BROADCAST", "LOOPBACK", "POINTTOPOINT", "RUNNING", "NOARP", "PROMISC", "MASTER", "SLAVE", "MULTICAST", "LOWER_UP")
_VOLUME_PHASES = {"waiting": 0, "failed": 1, "missing": 2, "located": 3, "provisioned": 4, "prepared": 5, "ready": 6, "closed": 7}
_VOLUME_TYPES = {"partition": 0, "disk": 1, "tmpfs": 2, "directory": 3, "symlink": 4, "overlay": 5, "external": 6}
_SELINUX = {"disabled": 0, "enabled, permissive": 1, "enabled, enforcing": 2}
_FIPS = {"disabled": 0, "enabled": 1, "enabled, strict": 2}
_INSTALL_PHASES = {"pending": 0, "installing": 1, "installed": 2, "waiting-for-reboot": 3, "failed": 4}
_FAMILIES = {"inet4": 2, "inet6": 10}
_SCOPES = {"global": 0, "site": 200, "link": 253, "host": 254, "nowhere": 255}
_SORT = {"v1": 0, "v2": 1}
_VLAN_PROTOCOLS = {"802.1q": 0x8100, "802.1ad": 0x88A8}
_BOND_MODES = {"balance-rr": 0, "active-backup": 1, "balance-xor": 2, "broadcast": 3, "802.3ad": 4, "balance-tlb": 5, "balance-alb": 6}
_ADDRESS_FLAGS = {"permanent": 128}

_DISK = _fields(
    "dev_path:14 size:1:int pretty_size:15 io_size:2:int sector_size:3:int readonly:4:bool cdrom:13:bool model?:5 firmware_version?:19 serial?:6 "
    "modalias?:7 wwid?:8 uuid?:17 bus_path?:9 sub_system?:10 transport?:11 rotational?:12:bool secondary_disks?*:16 symlinks?*:18"
)
_LINK = _fields(
    "alias?:31 altNames?*:32 index:1:int type:2:type linkIndex:3:int flags:4:flags hardwareAddr:5:mac permanentAddr:30:mac broadcastAddr:6:mac mtu:7:int "
    "queueDisc:8 masterIndex?:9:int operationalState:10:oper kind:11 slaveKind:12 busPath?:13 pciID?:14 driver?:15 driverVersion?:16 firmwareVersion?:17 "
    "productID?:18 vendorID?:19 product?:20 vendor?:21 linkState:22:bool speedMbit?:23:int port:24:port duplex:25:duplex vlan?:26:vlan bondMaster?:28:bond",
    type=_LINK_TYPES, oper=_OPERATIONAL, port=_PORTS, duplex=_DUPLEX,
    vlan=_fields("vlanID:1:int vlanProtocol:2:protocol", protocol=_VLAN_PROTOCOLS),
    bond=_fields("mode:1:mode miimon?:10:int", mode=_BOND_MODES),
)
_VOLUME = _fields(
    "dev_path:17 type:14 device_path:15 parent?:16 parent_dev_path?:18 offset:20:int size:1:int pretty_size:19 sector_size?:2:int io_size?:3:int name:4 "
    "uuid?:5 label?:6 block_size?:7:int filesystem_block_size?:8:int probed_size?:9:int partition_uuid?:10 partition_type?:11 partition_label?:12 "
    "partition_index?:13:int"
)
_VOLUME_STATUS = _fields(
    "phase:1:phase preFailPhase?:6:phase type:16:kind parentID?:19 location?:2 mountLocation?:11 partitionIndex?:8:int parentLocation?:7 uuid?:4 "
    "partitionUUID?:5 size?:9:int prettySize?:13 errorMessage?:3",
    phase=_VOLUME_PHASES, kind=_VOLUME_TYPES,
)
_MEMBER = _fields(
    "nodeId:1 addresses*:2:ip hostname:3 machineType:4:type operatingSystem:5 controlPlane?:6:plane", type=MACHINE_TYPES, plane=_fields("port:1:int")
)
_AFFILIATE = _fields(
    "nodeId:1 addresses*:2:ip hostname:3 nodename?:4 operatingSystem:5 machineType:6:type controlPlane?:8:plane",
    type=MACHINE_TYPES, plane=_fields("port:1:int"),
)

TABLES: dict[str, tuple[Field, ...]] = {
    "SystemInformations.hardware.talos.dev": _fields(
        "manufacturer?:1 productName?:2 version?:3 biosVersion?:8 serialnumber?:4 uuid?:5 wakeUpType?:6 skuNumber?:7"
    ),
    "Processors.hardware.talos.dev": _fields(
        "socket?:1 manufacturer?:2 productName?:3 maxSpeedMhz?:4:int bootSpeedMhz?:5:int status?:6:int serialNumber?:7 assetTag?:8 partNumber?:9 "
        "coreCount?:10:int coreEnabled?:11:int threadCount?:12:int"
    ),
    "MemoryModules.hardware.talos.dev": _fields(
        "sizeMiB?:1:int deviceLocator?:2 bankLocator?:3 speed?:4:int manufacturer?:5 serialNumber?:6 assetTag?:7 productName?:8"
    ),
    "LinkStatuses.net.talos.dev": _LINK,
    "HardwareAddresses.net.talos.dev": _fields("name:1 hardwareAddr:2:mac"),
    "AddressStatuses.net.talos.dev": _fields(
        "address:1:prefix local?:2:ip broadcast?:3:ip linkIndex:6:int linkName:7 family:8:family scope:9:scope flags:10:flag priority:11:int",
        family=_FAMILIES, scope=_SCOPES, flag=_ADDRESS_FLAGS,
    ),
    "NodeAddresses.net.talos.dev": _fields("addresses*:1:prefix sortAlgorithm:2:sort", sort=_SORT),
    "HostnameStatuses.net.talos.dev": _fields("hostname:1 domainname:2"),
    "NetworkStatuses.net.talos.dev": _fields("addressReady:1:bool connectivityReady:2:bool hostnameReady:3:bool etcFilesReady:4:bool"),
    "Disks.block.talos.dev": _DISK,
    "SystemDisks.block.talos.dev": _fields("diskID:1 devPath:2"),
    "DiscoveredVolumes.block.talos.dev": _VOLUME,
    "VolumeStatuses.block.talos.dev": _VOLUME_STATUS,
    "MachineStatuses.runtime.talos.dev": _fields(
        "stage:1:stage status:2:status", stage=STAGES, status=_fields("ready:1:bool unmetConditions*:2:condition", condition=_fields("name:1 reason:2"))
    ),
    "SecurityStates.talos.dev": _fields(
        "secureBoot:1:bool ukiSigningKeyFingerprint?:2 pcrSigningKeyFingerprint?:3 selinuxState?:4:selinux fipsState?:6:fips bootedWithUKI?:5:bool "
        "moduleSignatureEnforced?:7:bool",
        selinux=_SELINUX, fips=_FIPS,
    ),
    "PlatformMetadatas.talos.dev": _fields("platform?:1 hostname?:2 region?:3 zone?:4 instanceType?:5 instanceId?:6 providerId?:7 spot?:8:bool"),
    "Versions.runtime.talos.dev": _fields("name?:2 version:1"),
    "ExtensionStatuses.runtime.talos.dev": _fields(
        "image:1 metadata:2:meta",
        meta=_fields(
            "name:1 version:2 author:3 description:4 compatibility:5:compat extraInfo?:6", compat=_fields("talos:1:range", range=_fields("version:1"))
        ),
    ),
    "UniqueMachineTokens.runtime.talos.dev": _fields("token:1"),
    "MetaKeys.runtime.talos.dev": _fields("value:1"),
    "BootIDs.runtime.talos.dev": _fields("bootID:1"),
    "KernelCmdlines.runtime.talos.dev": _fields("cmdline:1"),
    "Diagnostics.runtime.talos.dev": _fields("message:1 details*:2"),
    "UnattendedInstallStatuses.runtime.talos.dev": _fields("image?:1 phase?:2:phase error?:3", phase=_INSTALL_PHASES),
    "APIServiceConfigs.runtime.talos.dev": _fields(
        "listenAddress:1 nodeRoutingDisabled:2:bool readonlyRoleMode:3:bool skipVerifyingClientCert:4:bool"
    ),
    "MaintenanceServiceConfigs.runtime.talos.dev": _fields("listenAddress:1 reachableAddresses*:2:ip"),
    "Services.v1alpha1.talos.dev": _fields("running:1:bool healthy:2:bool unknown:3:bool"),
    "TimeStatuses.v1alpha1.talos.dev": _fields("synced:1:bool epoch:2:int syncDisabled:3:bool spikeDetected:4:bool consecutiveSpikes:5:int"),
    "Identities.cluster.talos.dev": _fields("nodeId:1"),
    "Infos.cluster.talos.dev": _fields("clusterId:1 clusterName:2"),
    "Affiliates.cluster.talos.dev": _AFFILIATE,
    "Members.cluster.talos.dev": _MEMBER,
    "EtcdMembers.etcd.talos.dev": _fields("memberID:1"),
    "EtcdSpecs.etcd.talos.dev": _fields(
        "name:1 advertisedAddresses*:2:ip listenPeerAddresses*:5:ip listenClientAddresses*:6:ip image:3 extraArgs:7:map"
    ),
    "PKIStatuses.etcd.talos.dev": _fields("ready:1:bool version:2"),
    "Nodenames.kubernetes.talos.dev": _fields("nodename:1 hostnameVersion:2 skipNodeRegistration:3:bool"),
    "NodeStatuses.kubernetes.talos.dev": _fields(
        "nodename:1 nodeReady:2:bool unschedulable:3:bool labels:4:map annotations:5:map podCIDRs*:6:prefix"
    ),
    "Endpoints.kubernetes.talos.dev": _fields("addresses*:1:ip hosts*:2"),
    "OSRootSecrets.secrets.talos.dev": _fields("token:4"),
    "ApiCertificates.secrets.talos.dev": _fields("acceptedCAs*:5"),
    "Namespaces.meta.cosi.dev": _fields("description:1"),
    "ResourceDefinitions.meta.cosi.dev": _fields(
        "type:1 displayType:2 defaultNamespace:3 aliases*:4 allAliases*:5 printColumns*:6:column sensitivity?:7", column=_fields("name:1 jsonPath:2")
    ),
}


def varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(number: int, kind: int) -> bytes:
    return varint(number << 3 | kind)


def _block(number: int, payload: bytes) -> bytes:
    return _tag(number, 2) + varint(len(payload)) + payload


def _net_ip(text: str) -> bytes:
    return _block(1, ipaddress.ip_address(text).packed)


def _net_prefix(text: str) -> bytes:
    address, unused, bits = text.partition("/")
    return _net_ip(address) + (_tag(2, 0) + varint(int(bits)) if int(bits) else b"")


def _value(field: Field, value: Any) -> bytes:
    """The bytes of one value; empty for a zero."""
    kind, number = field.kind, field.number
    if isinstance(kind, dict):
        return _tag(number, 0) + varint(kind[value]) if kind[value] else b""
    if isinstance(kind, tuple):
        return _block(number, proto(kind, value))
    if kind == "str":
        raw = value.encode("utf-8", "surrogateescape")
        return _block(number, raw) if raw or field.many else b""
    if kind in ("int", "bool"):
        return _tag(number, 0) + varint(int(value)) if value else b""
    if kind == "mac":
        raw = bytes.fromhex(value.replace(":", ""))
        return _block(number, raw) if raw else b""
    if kind == "ip":
        return _block(number, _net_ip(value))
    if kind == "prefix":
        return _block(number, _net_prefix(value))
    if kind == "flags":
        total = sum(_FLAGS[name] for name in value.split(",") if name)
        return _tag(number, 0) + varint(total) if total else b""
    return b"".join(_block(number, _block(1, key.encode()) + _block(2, str(item).encode())) for key, item in sorted(value.items()))


def proto(fields: tuple[Field, ...], spec: dict[str, Any]) -> bytes:
    out = bytearray()
    for field in fields:
        value = spec.get(field.key)
        if value is None:
            continue
        if field.many:
            for item in value:
                out += _value(field, item)
        else:
            encoded = _value(field, value)
            if isinstance(field.kind, tuple) and encoded == _tag(field.number, 2) + b"\x00" and field.omit:
                continue
            out += encoded
    return bytes(out)


def _zero(field: Field) -> Any:
    if field.many:
        return []
    if isinstance(field.kind, dict):
        return next(word for word, number in field.kind.items() if number == 0) if 0 in field.kind.values() else ""
    return {"int": 0, "bool": False, "map": {}}.get(field.kind, "") if not isinstance(field.kind, tuple) else {}


def tree(fields: tuple[Field, ...], spec: dict[str, Any]) -> dict[str, Any]:
    """The spec as the YAML shows it: all keys in order, zeros left out where the structure says so."""
    out: dict[str, Any] = {}
    for field in fields:
        value = spec.get(field.key)
        if value is None:
            value = _zero(field)
        if field.omit and value == _zero(field):
            continue
        if isinstance(field.kind, tuple):
            value = [tree(field.kind, item) for item in value] if field.many else tree(field.kind, value)
        out[field.key] = value
    return out


def encode(kind: str, spec: Any, version: int) -> tuple[bytes, str]:
    """Bytes and YAML of a spec. A MachineConfig's spec is the text itself, a MachineType's the word."""
    if kind == "MachineConfigs.config.talos.dev":
        raw = spec if isinstance(spec, bytes) else spec.encode()
        return _block(1, raw), goyaml.dump(raw.decode("utf-8", "replace"))
    if kind == "MachineTypes.config.talos.dev":
        number = MACHINE_TYPES[spec]
        return (_tag(1, 0) + varint(number) if number else b""), goyaml.dump(spec)
    fields = tuple(field for field in TABLES[kind] if _has(kind, field.key, version))
    return proto(fields, spec), goyaml.dump(tree(fields, spec), version < 14)


_SINCE = {
    ("SystemInformations.hardware.talos.dev", "biosVersion"): 14,
    ("Disks.block.talos.dev", "firmware_version"): 14,
    ("Versions.runtime.talos.dev", "name"): 13,
    ("TimeStatuses.v1alpha1.talos.dev", "spikeDetected"): 14,
    ("TimeStatuses.v1alpha1.talos.dev", "consecutiveSpikes"): 14,
}


def _has(kind: str, key: str, version: int) -> bool:
    return _SINCE.get((kind, key), 0) <= version
