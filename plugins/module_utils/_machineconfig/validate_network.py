# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of the network documents. Words are Talos's."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import cel, go_net, go_text
from .verdict import Report, quote

Data = Mapping[str, Any]

_RESERVED_PRIORITIES = (0, 32500, 32766, 32767)


def _named(data: Data, report: Report, message: str = "name must be specified") -> None:
    report.need(data.get("name"), "name", message)


def _link(data: Data, report: Report, below: str = "") -> None:
    """What every link has: addresses and routes."""
    for index, address in enumerate(data.get("addresses") or []):
        value = address.get("address")
        if not value:
            report.error(f"{below}addresses.{index}", f"address {index} must be specified")
        elif go_net.is_unspecified(value):
            report.error(f"{below}addresses.{index}", f"address {index} must be a valid IP address")
    for index, route in enumerate(data.get("routes") or []):
        for key, what in (("destination", "prefix"), ("gateway", "address"), ("source", "address")):
            if route.get(key) and go_net.is_unspecified(route[key]):
                report.error(f"{below}routes.{index}.{key}", f"route {index} {key} must be a valid IP {what}")


def _plain_link(data: Data, version: str, report: Report) -> None:
    _named(data, report)
    _link(data, report)


def _bond(data: Data, version: str, report: Report) -> None:
    _named(data, report)
    report.need(data.get("links"), "links", "at least one link must be specified")
    mode = data.get("bondMode")
    if mode is None:
        report.error("bondMode", "bond mode must be specified")
    elif mode == "802.3ad":
        for key in ("miimon", "updelay", "downdelay"):
            if data.get(key) is None:
                report.warn(key, f"{key} was not specified for 802.3ad bond")
    _link(data, report)


def _vlan(data: Data, version: str, report: Report) -> None:
    _named(data, report)
    if not 1 <= (data.get("vlanID") or 0) <= 4094:
        report.error("vlanID", "vlanID must be specified and between 1 and 4094")
    report.need(data.get("parent"), "parent", "parent must be specified")
    _link(data, report)


def _vrf(data: Data, version: str, report: Report) -> None:
    _named(data, report)
    table = data.get("table") or "unspec"
    if table in ("unspec", "local", "main", "default"):
        report.error("table", f"cannot create vrf with reserved table {table}")
    _link(data, report)


def _veth(data: Data, version: str, report: Report) -> None:
    peer = data.get("peer") or {}
    for field, path, name in (("name", "name", data.get("name") or ""), ("peer name", "peer.name", peer.get("name") or "")):
        wrong = _wrong_link_name(field, name)
        if wrong:
            report.error(path, wrong)
    if data.get("name") and data.get("name") == peer.get("name"):
        report.error("peer.name", "name and peer name must be different")
    _link(data, report)
    _link(peer, report, "peer.")


def _wrong_link_name(field: str, name: str) -> str:
    if not name:
        return f"{field} must be specified"
    if len(name.encode()) > 15:
        return f"{field} must not exceed 15 bytes"
    if name in (".", ".."):
        return f"{field} must not be {quote(name)}"
    if "/" in name or ":" in name:
        return f"{field} must not contain '/' or ':'"
    if any(not character.isprintable() or character.isspace() for character in name):
        return f"{field} must not contain whitespace or non-printable characters"
    return ""


def _wireguard(data: Data, version: str, report: Report) -> None:
    _named(data, report)
    length = "invalid wireguard key length"
    key = data.get("privateKey") or ""
    if not key:
        report.error("privateKey", "wireguard private key must be specified")
    elif go_net.wrong_base64(key, 32, length):
        report.error("privateKey", f"wireguard private key is invalid: {go_net.wrong_base64(key, 32, length)}")
    if not 0 <= (data.get("listenPort") or 0) <= 65535:
        report.error("listenPort", "wireguard listen port must be between 0 and 65535")
    for index, peer in enumerate(data.get("peers") or []):
        at, path = f"(peer index {index})", f"peers.{index}"
        public, shared = peer.get("publicKey") or "", peer.get("presharedKey") or ""
        if not public:
            report.error(f"{path}.publicKey", f"wireguard peer public key must be specified {at}")
        elif go_net.wrong_base64(public, 32, length):
            report.error(f"{path}.publicKey", f"wireguard peer public key is invalid {at}: {go_net.wrong_base64(public, 32, length)}")
        if shared and go_net.wrong_base64(shared, 32, length):
            report.error(f"{path}.presharedKey", f"wireguard peer preshared key is invalid {at}: {go_net.wrong_base64(shared, 32, length)}")
        if (peer.get("persistentKeepaliveInterval") or 0) < 0:
            report.error(f"{path}.persistentKeepaliveInterval", f"wireguard peer persistent keepalive interval cannot be negative {at}")
    _link(data, report)


def _dhcp(data: Data, version: str, report: Report) -> None:
    _named(data, report)
    is_duid = data.get("clientIdentifier") == "duid"
    if data.get("duidRaw") and not is_duid:
        report.error("duidRaw", "duidRaw can only be set if clientIdentifier is 'duid'")
    if is_duid and not data.get("duidRaw"):
        report.error("duidRaw", "duidRaw must be set if clientIdentifier is 'duid'")


def _ethernet(data: Data, version: str, report: Report) -> None:
    _named(data, report, "name is required")


def _address_name(data: Data, report: Report) -> None:
    name = data.get("name") or ""
    if not name:
        report.error("name", "name must be specified")
    elif go_net.wrong_address(name):
        report.error("name", f"name must be a valid IP address: {go_net.wrong_address(name)}")
    report.need(data.get("link"), "link", "link must be specified")


def _layer2_vip(data: Data, version: str, report: Report) -> None:
    _address_name(data, report)


def _hcloud_vip(data: Data, version: str, report: Report) -> None:
    _address_name(data, report)
    report.need(data.get("apiToken"), "apiToken", "apiToken must be specified")


def _hostname(data: Data, version: str, report: Report) -> None:
    auto, hostname = data.get("auto"), data.get("hostname") or ""
    if auto is None and not hostname:
        report.error("", "either 'auto' or 'hostname' must be set")
    if auto not in (None, "off") and hostname:
        report.error("auto", "'auto' and 'hostname' cannot be set at the same time")
    if auto == "talos-addr":
        report.error("auto", f"invalid value for 'auto': {auto}")
    if hostname:
        if len(hostname.encode()) > 253:
            report.error("hostname", f"fqdn is too long: {len(hostname.encode())}")
        first = hostname.split(".", 1)[0]
        if not 1 <= len(first.encode()) <= 63:
            report.error("hostname", f"invalid hostname {quote(first)}")


def _kubespan(data: Data, version: str, report: Report) -> None:
    mtu = data.get("mtu")
    if mtu is not None and mtu < 1280:
        report.error("mtu", "kubespan link MTU must be at least 1280")
    for subnet in (data.get("filters") or {}).get("endpoints") or []:
        if not go_net.is_subnet_or_address(subnet):
            report.error("filters.endpoints", f"KubeSpan endpoint filter is not valid: {quote(subnet.removeprefix('!'))}")


def _link_alias(data: Data, version: str, report: Report) -> None:
    name = data.get("name") or ""
    if not name:
        report.error("name", "name must be specified")
    elif "%" in name and version > "1.12":
        prefix, dummy, suffix = name.partition("%")
        if suffix != "d" or not prefix:
            report.error("name", f"name {quote(name)} contains an invalid format verb, use %d suffix")
    expression(data.get("selector"), cel.LINK, "selector.match", "link selector is invalid", "link selector is required", report)


def expression(selector: Data | None, variables: frozenset[str], path: str, invalid: str, missing: str, report: Report) -> None:
    """A CEL expression: there (missing "" where it may be absent), and right as far as that is checked here (cel.py)."""
    match = (selector or {}).get("match")
    if not match:
        if missing:
            report.error(path, missing)
        return
    wrong = cel.wrong_expression(match, variables)
    if wrong:
        report.error(path, f"{invalid}: {wrong}")


def _resolver(data: Data, version: str, report: Report) -> None:
    if version < "1.14":
        return
    host_dns = data.get("hostDNS") or {}
    if host_dns and not host_dns.get("enabled"):
        for key in ("forwardKubeDNSToHost", "resolveMemberNames"):
            if host_dns.get(key):
                report.error(f"hostDNS.{key}", f"hostDNS.{key} cannot be enabled when hostDNS.enabled is false")
    servers = data.get("nameservers") or []
    encrypted = 0
    for index, server in enumerate(servers):
        protocol, name = server.get("protocol") or "Do53", server.get("tlsServerName")
        if protocol == "Do53":
            if name:
                report.error(f"nameservers.{index}.tlsServerName", f"tlsServerName must be empty when protocol is Do53: entry {index}")
        else:
            encrypted += 1
            report.need(name, f"nameservers.{index}.tlsServerName", f"tlsServerName must be set when protocol is {protocol}: entry {index}")
        report.need(server.get("address"), f"nameservers.{index}.address", f"nameserver address must be a valid IP: entry {index}")
    if encrypted and encrypted == len(servers):
        report.warn(
            "nameservers",
            "all configured nameservers use encrypted DNS (DoT or DoH): validating certificates requires a correct system clock, "
            "so boot may stall when NTP servers are configured by hostname; consider keeping at least one plain-DNS fallback "
            "or configuring NTP servers by IP address")


def _routing_rule(data: Data, version: str, report: Report) -> None:
    name = data.get("name") or ""
    report.need(name, "name", "name must be specified")
    number = int(name) if name.isascii() and name.isdigit() and len(name) < 20 else None
    priority = number if number is not None and number < 1 << 32 else 0
    if number is None or number >= 1 << 32:
        cause = "value out of range" if number is not None else "invalid syntax"
        priority = (1 << 32) - 1 if number is not None else 0
        report.error("name", f"invalid name: must be priority parsable unsigned integer: strconv.ParseUint: parsing {quote(name)}: {cause}")
    if priority in _RESERVED_PRIORITIES:
        listed = " ".join(str(one) for one in _RESERVED_PRIORITIES)
        report.error("name", f"priority must be between 1 and 32765 (excluding reserved priorities [{listed}])")
    if not data.get("table") and (data.get("action") or "unspec") in ("unspec", "unicast"):
        report.error("table", "either table or a non-unicast action must be specified")
    if data.get("fwMask") and not data.get("fwMark"):
        report.error("fwMask", "fwMask requires fwMark to be set")


def _rule(data: Data, version: str, report: Report) -> None:
    ports = (data.get("portSelector") or {}).get("ports") or []
    if not data.get("name"):
        report.error("name", "name is required")
    elif not ports:
        report.error("portSelector.ports", "portSelector.ports is required")
    else:
        wrong = _wrong_ports(ports)
        if wrong:
            report.error("portSelector.ports", wrong)
            return
        for index, rule in enumerate(data.get("ingress") or []):
            if not rule.get("subnet"):
                report.error(f"ingress.{index}.subnet", "invalid subnet: invalid Prefix")
                return


def _wrong_ports(ports: list[Any]) -> str:
    ranges = sorted(((port, port) if isinstance(port, int) else tuple(map(int, port.split("-"))) for port in ports), key=lambda pair: pair[0])
    for index, (low, high) in enumerate(ranges):
        if low > high:
            return f"invalid port range: {low}-{high}"
        if index and low <= ranges[index - 1][1]:
            return f"invalid port range: {low}-{high}, overlaps with {ranges[index - 1][0]}-{ranges[index - 1][1]}"
    return ""


def _static_host(data: Data, version: str, report: Report) -> None:
    report.need(data.get("name"), "name", "name is required")
    if not go_net.is_address(data.get("name") or ""):
        report.error("name", "name must be a valid IP address")
    report.need(data.get("hostnames"), "hostnames", "at least one hostname is required")


def _time_sync(data: Data, version: str, report: Report) -> None:
    if (data.get("bootTimeout") or 0) < 0:
        report.error("bootTimeout", "bootTimeout cannot be negative")
    ntp = data.get("ntp")
    if ntp is not None and data.get("ptp") is not None:
        report.error("ptp", "only one of ntp or ptp configuration can be specified")
    if ntp is not None and ntp.get("useNTS"):
        for server in ntp.get("servers") or []:
            if go_net.is_bare_address(server):
                report.error("ntp.servers", f"NTS requires hostnames, not IP addresses: {quote(server)}")


def _blackhole_route(data: Data, version: str, report: Report) -> None:
    _named(data, report)
    wrong = go_net.wrong_prefix(data.get("name") or "")
    if wrong:
        report.error("name", f"name must be a valid address prefix: {wrong}")


def _probe(data: Data, report: Report) -> None:
    if (data.get("interval") or 0) < 0:
        report.error("interval", f"probe interval cannot be negative: {go_text.format_duration(data['interval'])}")
    if (data.get("failureThreshold") or 0) < 0:
        report.error("failureThreshold", f"probe failure threshold cannot be negative: {data['failureThreshold']}")


def _tcp_probe(data: Data, version: str, report: Report) -> None:
    _named(data, report, "probe name is required")
    report.need(data.get("endpoint"), "endpoint", "TCP probe endpoint is required")
    if (data.get("timeout") or 0) < 0:
        report.error("timeout", f"TCP probe timeout cannot be negative: {go_text.format_duration(data['timeout'])}")
    _probe(data, report)


def _http_probe(data: Data, version: str, report: Report) -> None:
    _named(data, report, "probe name is required")
    url = data.get("url")
    if url is None:
        report.error("url", "HTTP probe URL is required")
    elif url.scheme not in ("http", "https"):
        report.error("url", f"HTTP probe URL scheme must be http or https, got {quote(url.scheme)}")
    elif url.opaque or not url.hostname:
        report.error("url", "HTTP probe URL must be an absolute http or https URL with a non-empty host")
    if (data.get("timeout") or 0) < 0:
        report.error("timeout", f"HTTP probe timeout cannot be negative: {go_text.format_duration(data['timeout'])}")
    _probe(data, report)


CHECKS: dict[str, Callable[[Data, str, Report], None]] = {
    "BlackholeRouteConfig": _blackhole_route, "BondConfig": _bond, "BridgeConfig": _plain_link, "DHCPv4Config": _dhcp, "DHCPv6Config": _dhcp,
    "DummyLinkConfig": _plain_link, "EthernetConfig": _ethernet, "HCloudVIPConfig": _hcloud_vip, "HTTPProbeConfig": _http_probe,
    "HostnameConfig": _hostname, "KubeSpanConfig": _kubespan, "Layer2VIPConfig": _layer2_vip, "LinkAliasConfig": _link_alias,
    "LinkConfig": _plain_link, "NetworkRuleConfig": _rule, "ResolverConfig": _resolver, "RoutingRuleConfig": _routing_rule,
    "StaticHostConfig": _static_host, "TCPProbeConfig": _tcp_probe, "TimeSyncConfig": _time_sync, "VLANConfig": _vlan, "VRFConfig": _vrf,
    "VethConfig": _veth, "WireguardConfig": _wireguard,
}
