# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of `machine.network.interfaces` of the legacy document. Order and words are Talos's."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import go_net
from .masking import MASK
from .verdict import Report, quote

Data = Mapping[str, Any]

_DEVICE = "networking.os.device"
_EXCLUSIVE = "config sections are mutually exclusive"
_ENUMERATIONS = (
    ("mode", "invalid bond type", ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")),
    ("xmitHashPolicy", "invalid xmit hash policy", ("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4")),
    ("lacpRate", "invalid lacp rate", ("slow", "fast")),
    ("arpValidate", "invalid arp_validate mode", ("none", "active", "backup", "all", "filter", "filter-active", "filter-backup")),
    ("arpAllTargets", "invalid arp_all_targets mode", ("any", "all")),
    ("primaryReselect", "invalid primary_reselect mode", ("always", "better", "failure")),
    ("failOverMac", "invalid fail_over_mac value", ("none", "active", "follow")),
    ("adSelect", "invalid ad_select mode", ("stable", "bandwidth", "count")),
)


def check_interfaces(devices: Sequence[Data], report: Report) -> None:
    members: dict[str, str] = {}
    for index, device in enumerate(devices):
        name = device.get("interface") or ""
        path = f"machine.network.interfaces.{index}"
        bond, bridge = device.get("bond"), device.get("bridge")
        if bond is not None and bridge is not None:
            report.error(path, f"interface has both bridge and bond sections set {quote(name)}: {_EXCLUSIVE}")
        if bond is not None and bond.get("interfaces") and bond.get("deviceSelectors"):
            report.error(path, f"interface {quote(name)} has both interfaces and selectors set: {_EXCLUSIVE}")
        for member in (bridge if bridge is not None else bond or {}).get("interfaces") or []:
            if member in members and members[member] != name:
                report.error(path, f"interface {quote(member)} is declared as part of two separate links: {quote(members[member])} and {quote(name)}")
            members[member] = name
    for index, device in enumerate(devices):
        if not device.get("ignore"):
            path = f"machine.network.interfaces.{index}"
            _check_device(device, path, report)
            _check_addressing(device, members, path, report)
            _check_routes(device, path, report)


def _check_device(device: Data, path: str, report: Report) -> None:
    name, selector = device.get("interface") or "", device.get("deviceSelector")
    sections = f"[{_DEVICE}.interface], [{_DEVICE}.deviceSelector]"
    if not name and selector is None:
        report.error(path, f"{sections}: required either config section to be set")
    elif name and selector is not None:
        report.error(path, f"{sections}: {_EXCLUSIVE}")
    if selector is not None and not selector:
        report.error(f"{path}.deviceSelector", f"[{_DEVICE}.deviceSelector]: config section should contain at least one field")
    if device.get("bond") is not None:
        _check_bond(device["bond"], f"{path}.bond", report)
    if device.get("wireguard") is not None:
        _check_wireguard(device["wireguard"], f"{path}.wireguard", report)
    for vlan in device.get("vlans") or []:
        where = f"{name}.{vlan.get('vlanId') or 0}"
        if vlan.get("addresses") and vlan.get("cidr"):
            report.error(f"{path}.vlans", f"[{_DEVICE}.vlan] {where}: vlan can't have both .cidr and .addresses set")
        for key, address in ((("CIDR", vlan["cidr"]),) if vlan.get("cidr") else ()) + tuple(("addresses", one) for one in vlan.get("addresses") or []):
            wrong = _wrong_address(address)
            if wrong:
                report.error(f"{path}.vlans", f"[{_DEVICE}.vlan.{key}] {where}: {wrong}")


def _check_bond(bond: Data, path: str, report: Report) -> None:
    for key, words, allowed in _ENUMERATIONS:
        value = bond.get(key) or ""
        if value and value not in allowed:
            report.error(f"{path}.{key}", f"{words} {value}")
    mode = bond.get("mode") or "balance-rr"
    if mode not in _ENUMERATIONS[0][2]:
        mode = "balance-rr"
    miimon = bond.get("miimon") or 0
    for key, word in (("updelay", "upDelay"), ("downdelay", "downDelay")):
        delay = bond.get(key) or 0
        if not miimon and delay:
            report.error(f"{path}.{key}", f"bond.{word} can't be set if miiMon is zero")
        elif miimon and delay % miimon:
            report.error(f"{path}.{key}", f"bond.{word} should be a multiple of miiMon")
    balancing = ("802.3ad", "balance-alb", "balance-tlb")
    for wrong, key, message in (
        (bond.get("arpIPTarget"), "arpIPTarget", "bond.arpIPTarget is not supported"),
        (bond.get("lacpRate") and mode != "802.3ad", "lacpRate", "bond.lacpRate is only available in 802.3ad mode"),
        (bond.get("adActorSystem"), "adActorSystem", "bond.adActorSystem is not supported"),
        (mode in balancing and bond.get("arpValidate"), "arpValidate", f"bond.arpValidate is not available in {mode} mode"),
        (mode not in ("active-backup", "balance-alb", "balance-tlb") and bond.get("primary"), "primary", f"bond.primary is not available in {mode} mode"),
        (mode in balancing and bond.get("arpInterval"), "arpInterval", f"bond.arpInterval is not available in {mode} mode"),
        (mode != "balance-rr" and (bond.get("packetsPerSlave") or 0) > 1, "packetsPerSlave", f"bond.packetsPerSlave is not available in {mode} mode"),
        (mode not in ("balance-alb", "balance-tlb") and bond.get("tlbDynamicLb"), "tlbDynamicLb", f"bond.tlbDynamicTLB is not available in {mode} mode"),
        (mode != "802.3ad" and bond.get("adActorSysPrio"), "adActorSysPrio", "bond.adActorSysPrio is only available in 802.3ad mode"),
        (mode != "802.3ad" and bond.get("adUserPortKey"), "adUserPortKey", "bond.adUserPortKey is only available in 802.3ad mode"),
    ):
        if wrong:
            report.error(f"{path}.{key}", message)


def _check_wireguard(wireguard: Data, path: str, report: Report) -> None:
    # Talos quotes a key of the wrong length; a key is never quoted here
    wrong = go_net.wrong_base64(wireguard.get("privateKey") or "", 32, f"wrong key {quote(MASK if wireguard.get('privateKey') else '')} length: %d")
    if wrong:
        report.error(f"{path}.privateKey", f"private key is invalid: {wrong}")
    for peer in wireguard.get("peers") or []:
        wrong = go_net.wrong_base64(peer.get("publicKey") or "", 32, f"wrong key {quote(peer.get('publicKey') or '')} length: %d")
        if wrong:
            report.error(f"{path}.peers", f"public key invalid: {wrong}")
        endpoint = peer.get("endpoint") or ""
        if endpoint and go_net.wrong_host_port(endpoint):
            report.error(f"{path}.peers", f"peer endpoint {quote(endpoint)} is invalid")
        for allowed in peer.get("allowedIPs") or []:
            if not go_net.is_cidr(allowed):
                report.error(f"{path}.peers", f"peer allowed IP {quote(allowed)} is invalid: invalid CIDR address: {allowed}")


def _wrong_address(address: str) -> str:
    if "/" in address:
        return "" if go_net.is_cidr(address) else f"invalid CIDR address: {address}"
    return "" if go_net.is_bare_address(address) else f"failed to parse IP address {quote(address)}"


def _check_addressing(device: Data, members: Mapping[str, str], path: str, report: Report) -> None:
    name = device.get("interface") or ""
    shown = f"[{_DEVICE}] {quote(name)}"
    cidr, addresses, vip = device.get("cidr") or "", device.get("addresses") or [], device.get("vip")
    if name in members and (device.get("dhcp") or cidr or addresses or vip is not None):
        report.error(path, f"{shown}: bonded/bridged interface shouldn't have any addressing methods configured")
    if addresses and cidr:
        report.error(path, f"{shown}: interface can't have both .cidr and .addresses set")
    if cidr:
        wrong = _wrong_address(cidr)
        if wrong:
            report.error(f"{path}.cidr", f"[{_DEVICE}.CIDR] {quote(name)}: {wrong}")
        report.warn(f"{path}.cidr", f"{quote(name)}: machine.network.interface.cidr is deprecated, please use machine.network.interface.addresses")
    for address in addresses:
        wrong = _wrong_address(address)
        if wrong:
            report.error(f"{path}.addresses", f"[{_DEVICE}.addresses] {quote(name)}: {wrong}")
    if vip is not None and not go_net.is_bare_address(vip.get("ip") or ""):
        report.error(f"{path}.vip.ip", f"[{_DEVICE}.vip] failed to parse {quote(vip.get('ip') or '')} as IP address")


def _check_routes(device: Data, path: str, report: Report) -> None:
    for index, route in enumerate(device.get("routes") or []):
        shown = f"{_DEVICE}.route[{index}]"
        network, gateway, source = (route.get(key) or "" for key in ("network", "gateway", "source"))
        if network and not go_net.is_cidr(network):
            report.error(f"{path}.routes.{index}.network", f"[{shown}.network] {quote(network)}: invalid network address")
        if gateway and not go_net.is_bare_address(gateway):
            report.error(f"{path}.routes.{index}.gateway", f"[{shown}.gateway] {quote(gateway)}: invalid network address")
        if not gateway and not network:
            report.error(f"{path}.routes.{index}", f"[{shown}]: either network or gateway should be set")
        if source and not go_net.is_bare_address(source):
            report.error(f"{path}.routes.{index}.source", f"[{shown}.source] {quote(source)}: invalid network address")
