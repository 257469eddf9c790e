# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The document kinds of one Talos version: names, flags and typed fields, decoded from the packed tables."""
from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from . import go_text, problem
from .codec import Codec
from .containers import Field, FreeForm, KeyedList, ListOf, MapOf, Struct
from .problem import ConfigProblem
from .sizes import ByteSize, DiskSize, Size, SizeCondition
from .values import (
    Args, Base64, Bool, Choice, Duration, Formed, Int, Octal, Overwritten, PemPair, PortRanges, RawBytes, Text, Unmergeable, Url, optional,
    routing_table,
)

VERSIONS = ("1.12", "1.13", "1.14")
LEGACY = "v1alpha1"

# The words of Talos's enumerations; the first is the zero value where none is named.
_CHOICES: dict[str, tuple[tuple[str, ...], str]] = {
    "block.EncryptionProviderType": (("none", "luks2"), "none"),
    "nethelpers.ADLACPActive": (("off", "on"), "off"),
    "nethelpers.ADSelect": (("stable", "bandwidth", "count"), "stable"),
    "nethelpers.ARPAllTargets": (("any", "all"), "any"),
    "nethelpers.ARPValidate": (("none", "active", "backup", "all", "filter", "filter-active", "filter-backup"), "none"),
    "nethelpers.AutoHostnameKind": (("off", "talos-addr", "stable"), "off"),
    "nethelpers.BondMode": (
        ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"), "balance-rr"),
    "nethelpers.BondXmitHashPolicy": (("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4"), "layer2"),
    "nethelpers.ClientIdentifier": (("none", "mac", "duid"), "none"),
    "nethelpers.DNSProtocol": (("Do53", "DoT", "DoH"), "Do53"),
    "nethelpers.DefaultAction": (("accept", "block"), "accept"),
    "nethelpers.LACPRate": (("slow", "fast"), "slow"),
    "nethelpers.PrimaryReselect": (("always", "better", "failure"), "always"),
    "nethelpers.Protocol": (("icmp", "tcp", "udp", "icmpv6"), "Protocol(0)"),
    "nethelpers.RoutingRuleAction": (("unspec", "unicast", "blackhole", "unreachable", "prohibit"), "unspec"),
    "nethelpers.VLANProtocol": (("802.1q", "802.1ad"), ""),
    "nethelpers.WOLMode": (("phy", "unicast", "multicast", "broadcast", "magic", "magicsecure", "filter"), ""),
    "storage.LVMLogicalVolumeType": (("linear", "raid1", "raid0", "raid10"), "linear"),
    "storage.MDLevel": (("raid1",), "raid1"),
    "storage.MDMetadata": (("1.0", "1.2"), "1.0"),
}
_FILESYSTEMS = {
    "1.12": ("none", "xfs", "vfat", "ext4", "iso9660", "swap"),
    "1.13": ("none", "xfs", "vfat", "ext4", "iso9660", "swapi", "virtiofs"),
    "1.14": ("none", "xfs", "vfat", "ext4", "iso9660", "swapi", "virtiofs", "btrfs"),
}
_VOLUMES = ("partition", "disk", "tmpfs", "directory", "symlink", "overlay", "external")
# Lists that Go names; the keys by which a patch finds an element again.
_NAMED_LISTS: dict[str, tuple[str, ...]] = {
    "extensions.ConfigFileList": ("mountPath",),
    "network.IngressConfig": (),
    "security.ImageVerificationRules": ("image",),
    "v1alpha1.AdmissionPluginConfigList": ("name",),
    "v1alpha1.AuthorizationConfigAuthorizerConfigList": (),
    "v1alpha1.ClusterInlineManifests": (),
    "v1alpha1.NetworkDeviceList": ("interface", "deviceSelector"),
    "v1alpha1.VlanList": ("vlanId",),
}
_POINTER_LISTS = frozenset({
    "v1alpha1.AdmissionPluginConfigList", "v1alpha1.AuthorizationConfigAuthorizerConfigList", "v1alpha1.NetworkDeviceList", "v1alpha1.VlanList",
})
# Structures that count as empty by some of their fields.
_DECISIVE = {"block.EncryptionSpec": ("provider", "keys")}
_WITHOUT_FIELDS = frozenset({"block.EncryptionKeyNodeID", "v1alpha1.EncryptionKeyNodeID"})
_INTS = {name: (bits, signed) for prefix, signed in (("int", True), ("uint", False))
         for name, bits in ((prefix, 64), *((f"{prefix}{bits}", bits) for bits in (8, 16, 32, 64)))}


@dataclass(frozen=True)
class Kind:
    """One document kind. name: LEGACY for the legacy document. conflicts: kinds that may not carry the same name."""

    name: str
    named: bool
    controlplane_only: bool
    secret: bool
    link: bool
    conflicts: tuple[str, ...]
    struct: Struct


class Schema:
    """The kinds of one Talos minor version, made one by one as they are asked for."""

    def __init__(self, version: str) -> None:
        self.version = version
        packed = json.loads(zlib.decompress(base64.b85decode(_packed(version))))
        self._types: dict[str, Any] = packed["types"]
        self._packed: dict[str, Any] = packed["kinds"]
        self._kinds: dict[str, Kind] = {}
        self._structs: dict[tuple[str, bool], Struct] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All kinds, the legacy document included, sorted."""
        return tuple(sorted(self._packed))

    def __contains__(self, kind: str) -> bool:
        return kind in self._packed

    def kind(self, name: str) -> Kind:
        """Raises KeyError for a kind that this version does not know."""
        if name not in self._kinds:
            packed = self._packed[name]
            flags = packed["g"]
            self._kinds[name] = Kind(
                name=name, named="n" in flags, controlplane_only="c" in flags, secret="s" in flags, link="l" in flags,
                conflicts=tuple(packed["k"]), struct=Struct(lambda: self._fields(packed["f"]), True),
            )
        return self._kinds[name]

    def _fields(self, packed: list[list[str]]) -> tuple[Field, ...]:
        return tuple(Field(name, self._codec(of, "r" in flags), "o" in flags) for name, of, flags in packed)

    def _struct(self, name: str, pointer: bool) -> Struct:
        key = (name, pointer)
        if key not in self._structs:
            packed = self._types[name]
            self._structs[key] = Struct(lambda: self._fields(packed), pointer, _DECISIVE.get(name, ()))
        return self._structs[key]

    def _codec(self, of: str, replace: bool) -> Codec:
        pointer = of.startswith("*")
        name = of.lstrip("*")
        if name.startswith("[]"):
            return ListOf(self._codec(name[2:], False), replace)
        if name == "map[string]interface {}" or name.endswith(".Unstructured"):
            return FreeForm(replace)
        if name.startswith("map[string]"):
            return MapOf(self._codec(name[len("map[string]"):], False))
        if name in _NAMED_LISTS:
            item = self._struct(name, name in _POINTER_LISTS)
            keys = _NAMED_LISTS[name]
            return KeyedList(item, keys, name == "security.ImageVerificationRules") if keys else ListOf(item, replace)
        plain = self._scalar(name, pointer)
        return plain if plain is not None else self._struct(name, pointer)

    def _scalar(self, name: str, pointer: bool) -> Codec | None:
        if name == "string" or name in ("v1alpha1.InstallDiskType", "config.ContainerNetworkMode", "config.ContainerSecurityProfile"):
            return Text(pointer)
        if name == "bool":
            return Bool(pointer)
        if name in _INTS:
            return Int(pointer, *_INTS[name], self.version == "1.12")
        if name in ("runtime.EtcFileMode", "v1alpha1.FileMode"):
            return Octal(self.version == "1.12")
        if name in _CHOICES:
            words, zero = _CHOICES[name]
            return Choice(words, zero, pointer)
        if name == "block.FilesystemType":
            return Choice(_FILESYSTEMS[self.version], "none", pointer)
        if name == "block.VolumeType":
            return Choice(_VOLUMES if self.version != "1.12" else _VOLUMES[:-1], "partition", pointer)
        if name == "block.ByteSize":
            return ByteSize(self.version != "1.12")
        if name == "block.Size":
            return Size(self.version != "1.12")
        if name == "time.Duration":
            return Duration(_ZEROS[self.version])
        if name in _FORMS:
            return _FORMS[name]()
        if name == "nethelpers.FailOverMAC":
            return Formed("one of none, active, follow", _fail_over_mac, "none", pointer)
        if name in _WITHOUT_FIELDS:
            self._types[name] = []
        return None


def _fail_over_mac(text: str) -> str:
    words = {"": "none", "0": "none", "1": "active", "2": "follow", "none": "none", "active": "active", "follow": "follow"}
    if text not in words:
        raise ValueError("not one of the words")
    return words[text]


# Which numbers a Talos version reads as no duration at all, when they are zero.
_ZEROS: dict[str, tuple[type, ...]] = {"1.12": (), "1.13": (int,), "1.14": (int, float)}
_FORMS: dict[str, Callable[[], Codec]] = {
    "cel.Expression": lambda: Overwritten("an expression", str),
    "meta.Addr": lambda: Formed("an IP address", optional(go_text.parse_address)),
    "network.Addr": lambda: Unmergeable("an IP address", optional(go_text.parse_address)),
    "netip.Addr": lambda: Formed("an IP address", optional(go_text.parse_address)),
    "meta.AddrPort": lambda: Formed("an IP address with a port", optional(go_text.parse_address_port)),
    "network.AddrPort": lambda: Unmergeable("an IP address with a port", optional(go_text.parse_address_port)),
    "netip.AddrPort": lambda: Formed("an IP address with a port", optional(go_text.parse_address_port)),
    "meta.Prefix": lambda: Formed("an address with a prefix length, such as 10.0.0.0/8", optional(go_text.parse_prefix)),
    "network.Prefix": lambda: Unmergeable("an address with a prefix length, such as 10.0.0.0/8", optional(go_text.parse_prefix)),
    "netip.Prefix": lambda: Formed("an address with a prefix length, such as 10.0.0.5/24", optional(go_text.parse_prefix)),
    "nethelpers.HardwareAddr": lambda: RawBytes("a hardware address with colons", go_text.parse_mac),
    "nethelpers.RoutingTable": lambda: Formed("a routing table: main, default, local or a number", routing_table, "unspec"),
    "meta.URL": Url,
    "v1alpha1.Endpoint": lambda: Url(pointer=True, keep_empty=True),
    "meta.Args": Args,
    "v1alpha1.Args": Args,
    "network.PortRanges": PortRanges,
    "v1alpha1.DiskSize": DiskSize,
    "v1alpha1.InstallDiskSizeMatcher": SizeCondition,
    "v1alpha1.Base64Bytes": Base64,
    "x509.PEMEncodedCertificateAndKey": lambda: PemPair(("crt", "key")),
    "x509.PEMEncodedCertificate": lambda: PemPair(("crt",)),
    "x509.PEMEncodedKey": lambda: PemPair(("key",)),
}


def _packed(version: str) -> str:
    """The table of one version; the others are not even imported."""
    if version == "1.12":
        from ._schema_1_12 import PACKED as packed_1_12
        return packed_1_12
    if version == "1.13":
        from ._schema_1_13 import PACKED as packed_1_13
        return packed_1_13
    if version == "1.14":
        from ._schema_1_14 import PACKED as packed_1_14
        return packed_1_14
    raise ConfigProblem(
        problem.CONTRACT_UNKNOWN, f"Talos {version[:16]} is not known here", hint=f"Known are {', '.join(VERSIONS)}.",
    )


@lru_cache(maxsize=None)
def schema(version: str) -> Schema:
    """The kinds of Talos `1.12`, `1.13` or `1.14`. Raises ConfigProblem (ContractUnknown)."""
    return Schema(version)
