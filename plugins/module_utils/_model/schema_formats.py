# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The forms that texts in records may have. A form of a plain pattern carries it, for a CRD."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from .identity import canonical_mac, canonical_uuid

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
DNS_1123 = re.compile(rf"{_LABEL}(\.{_LABEL})*\Z")
_VERSION = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?\Z")
_TALOS_VERSION = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?\Z")
_TIME = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})\Z")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")
_PIN = re.compile(r"([A-Za-z0-9+/]{43}=|[0-9a-fA-F]{64}|([0-9a-fA-F]{2}:){31}[0-9a-fA-F]{2})\Z")
_LINK = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}\Z")
_CRON = re.compile(r"[0-9*,/-]+(\s+[0-9*,/A-Za-z-]+){4}\Z")


@dataclass(frozen=True)
class Format:
    """`fault` gives '' or the rest of a sentence that starts with "it"; `example` is shown where YAML made a number of the text.

    For a CRD: `pattern` is a regular expression that RE2 takes too, `expression` says in CEL over `self` what no pattern can, and
    `longest` is the most characters that such a text has.
    """

    fault: Callable[[str], str]
    pattern: str = ""
    example: str = ""
    expression: str = ""
    longest: int = 253


def _talos_version(text: str) -> str:
    """A release by its whole name: what an installer image is called, and what a render depends on."""
    if _TALOS_VERSION.match(text):
        return ""
    if _TALOS_VERSION.match(f"v{text}"):
        return f"has to be a full version with a leading v: write v{text}"
    minor = re.fullmatch(r"v?([0-9]+\.[0-9]+)", text)
    return f"has to be a full version with a leading v and a patch release, such as {f'v{minor[1]}.9' if minor else 'v1.13.9'}"


def _matches(pattern: re.Pattern[str], fault: str, longest: int = 253) -> Format:
    return Format(lambda text: "" if pattern.match(text) else fault, "^" + pattern.pattern.replace(r"\Z", "$"), longest=longest)


def _name_in_cel(text: str) -> str:
    """CEL that says whether an expression's value is a DNS name and not four numbers with dots."""
    return f"(!{text}.matches('^[0-9.]+$') && !format.dns1123Subdomain().validate({text}.lowerAscii()).hasValue())"


def is_dns_1123(text: str) -> bool:
    """Whether a text can name a record (design section 3)."""
    return len(text) <= 253 and DNS_1123.match(text) is not None


def split_endpoint(text: str) -> tuple[str, int | None] | None:
    """Host and port (None where none is said) of `host`, `host:port`, `2001:db8::1` or `[2001:db8::1]:port`; None if it is none."""
    bracketed = re.fullmatch(r"\[([0-9a-fA-F:.]+)\](?::([0-9]{1,5}))?", text)
    if bracketed is not None:
        host, port = bracketed.group(1), bracketed.group(2)
    elif text.count(":") == 1:
        host, port = text.split(":")
        if not re.fullmatch(r"[0-9]{1,5}", port):
            return None
    else:
        host, port = text, None
    if not _is_host(host) or bracketed is not None and ":" not in host:
        return None
    if port is None:
        return host, None
    return (host, int(port)) if 0 < int(port) < 65536 else None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_host(text: str) -> bool:
    """An IP address or a DNS name; four numbers with dots are an address or nothing."""
    if _is_address(text):
        return True
    return is_dns_1123(text.lower()) and not re.fullmatch(r"[0-9.]+", text)


def _network(text: str) -> str:
    try:
        ipaddress.ip_network(text, strict=True)
    except ValueError:
        return "has to be a network such as 10.244.0.0/16, with no bits set behind the prefix"
    return "" if "/" in text else "has to be a network with a prefix length, such as 10.244.0.0/16"


def _interface(text: str) -> str:
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return "has to be an address with a prefix length, such as 192.0.2.10/24"
    return "" if "/" in text else "has to be an address with a prefix length, such as 192.0.2.10/24"


def _range(text: str) -> str:
    fault = "has to be a network such as 192.0.2.0/24 or a range such as 192.0.2.10-192.0.2.50"
    first, dash, last = text.partition("-")
    try:
        if not dash:
            ipaddress.ip_network(text.strip(), strict=False)
            return ""
        start = ipaddress.ip_address(first.strip())
        if re.fullmatch(r"[0-9]{1,3}", last.strip()) and start.version == 4:
            last = f"{str(start).rpartition('.')[0]}.{last.strip()}"
        end = ipaddress.ip_address(last.strip())
    except ValueError:
        return fault
    if start.version != end.version:
        return "goes from IPv4 to IPv6 or back"
    return "ends before it starts" if int(end) < int(start) else ""


def _url(text: str) -> str:
    fault = "has to be a URL such as https://192.0.2.5:6443"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return fault
    if parts.scheme != "https" or not parts.hostname or port == 0 or parts.username is not None:
        return fault
    return "" if parts.path in ("", "/") and not parts.query and not parts.fragment and _is_host(parts.hostname) else fault


_ENDPOINT_IN_CEL = (
    "isIP(self) || (self.matches('^[[][0-9a-fA-F:.]+[]](:[0-9]{1,5})?$') && self.contains(']') && isIP(self.substring(1, self.indexOf(']')))) || "
    "(self.matches('^[^:]+(:[0-9]{1,5})?$') && (isIP(self.split(':')[0]) || " + _name_in_cel("self.split(':')[0]") + "))")
_RANGE_IN_CEL = (
    "isCIDR(self) || isIP(self) || (self.matches('^[^-]+-[^-]+$') && isIP(self.split('-')[0].trim()) && "
    "(isIP(self.split('-')[1].trim()) || self.split('-')[1].trim().matches('^[0-9]{1,3}$')))")
_URL_IN_CEL = (
    "isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != '' && url(self).getEscapedPath() in ['', '/'] && "
    "url(self).getQuery().size() == 0")

FORMATS: Mapping[str, Format] = {
    "name": Format(lambda text: "" if is_dns_1123(text) else "has to be a DNS-1123 name: lower-case letters, digits, '-' and '.'",
                   "^" + DNS_1123.pattern.replace(r"\Z", "$")),
    "uuid": Format(lambda text: "" if canonical_uuid(text) else "has to be a UUID of 8-4-4-4-12 hexadecimal digits",
                   r"^\s*[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\s*$", longest=64),
    "mac": Format(lambda text: "" if canonical_mac(text) else "has to be a MAC address such as aa:bb:cc:dd:ee:ff",
                  r"^[\s:.-]*([0-9a-fA-F][\s:.-]*){12}$", longest=64),
    "address": Format(lambda text: "" if _is_address(text) else "has to be an IP address", expression="isIP(self)", longest=64),
    "host": Format(lambda text: "" if _is_host(text) else "has to be an IP address or a host name", expression=f"isIP(self) || {_name_in_cel('self')}"),
    "endpoint": Format(lambda text: "" if split_endpoint(text) else "has to be an address or host name, with or without ':port'",
                       expression=_ENDPOINT_IN_CEL, longest=300),
    "network": Format(_network, expression="isCIDR(self) && cidr(self) == cidr(self).masked()", longest=64),
    "interface-address": Format(_interface, expression="isCIDR(self)", longest=64),
    "range": Format(_range, expression=_RANGE_IN_CEL, longest=128),
    "https-url": Format(_url, expression=_URL_IN_CEL, longest=512),
    "version": _matches(_VERSION, "has to be a version of three numbers, such as v1.35.0", 64),
    "talos-version": Format(_talos_version, "^" + _TALOS_VERSION.pattern.replace(r"\Z", "$"), "v1.13.9", longest=64),
    "time": _matches(_TIME, "has to be a time such as 2026-01-31T12:00:00Z", 64),
    "label-key": _matches(_LABEL_KEY, "has to be a label key as Kubernetes has them", 317),
    "label-value": _matches(_LABEL_VALUE, "has to be a label value as Kubernetes has them (63 characters of letters, digits, '-', '_', '.')", 63),
    "fingerprint": _matches(_PIN, "has to be a certificate fingerprint: base64 as talosctl has it, or 64 hexadecimal digits", 95),
    "link": _matches(_LINK, "has to be the name of a network link", 64),
    "cron": _matches(_CRON, "has to be a cron schedule of five fields, in UTC", 256),
}
