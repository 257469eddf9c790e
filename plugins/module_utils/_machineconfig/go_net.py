# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and endpoints inside of texts, with Go's own words for what is wrong with them."""
from __future__ import annotations

import base64
import binascii
import ipaddress
import re

from . import go_text, go_url
from .verdict import quote


def is_address(text: str) -> bool:
    """An IP address, a zone allowed."""
    try:
        go_text.parse_address(text)
    except ValueError:
        return False
    return True


def is_bare_address(text: str) -> bool:
    """An IP address without a zone."""
    return "%" not in text and is_address(text)


def is_cidr(text: str) -> bool:
    try:
        go_text.parse_prefix(text)
    except ValueError:
        return False
    return True


def is_subnet_or_address(text: str) -> bool:
    """What Talos takes in subnet filters, a leading `!` dropped."""
    bare = text.removeprefix("!")
    return is_cidr(bare) or is_address(bare)


def is_unspecified(text: str) -> bool:
    """0.0.0.0 or ::, with or without a prefix length."""
    try:
        return ipaddress.ip_address(text.split("/")[0].split("%")[0]).is_unspecified
    except ValueError:
        return False


def masked(prefix: str) -> bool:
    """Whether no host bit of a prefix is set."""
    return str(ipaddress.ip_interface(prefix).network.network_address) == str(ipaddress.ip_interface(prefix).ip)


def wrong_address(text: str) -> str:
    """"" for an IP address, else the words of Go's netip."""
    if is_address(text):
        return ""
    head = f"ParseAddr({quote(text)}): "
    for character in text:
        if character == ".":
            return head + _wrong_ipv4(text)
        if character == ":":
            return head + _wrong_ipv6(text)
        if character == "%":
            return head + "missing IPv6 address"
    return head + "unable to parse IP"


def _wrong_ipv4(text: str) -> str:
    fields: list[str] = [""]
    for position, character in enumerate(text):
        if character.isascii() and character.isdigit():
            if fields[-1] == "0":
                return "IPv4 field has octet with leading zero"
            fields[-1] += character
            if int(fields[-1]) > 255:
                return "IPv4 field has value >255"
        elif character == ".":
            if not fields[-1] or position == len(text) - 1:
                return f"IPv4 field must have at least one digit (at {quote(text[position:])})"
            if len(fields) == 4:
                return "IPv4 address too long"
            fields.append("")
        else:
            return f"unexpected character (at {quote(text[position:])})"
    return "IPv4 address too short"


def _wrong_ipv6(text: str) -> str:
    """The first thing that Go's parser stumbles over, read from the left as it reads."""
    rest = text.split("%", 1)[0]
    if "%" in text and text.endswith("%"):
        return "zone must be a non-empty string"
    fields, ellipsis = 0, -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return "unable to parse IP"
    while fields < 8:
        digits = re.match("[0-9a-fA-F]*", rest)
        group = digits.group(0) if digits else ""
        if len(group) > 4:
            return f"each group must have 4 or less digits (at {quote(rest)})"
        if not group:
            return f"each colon-separated field must have at least one digit (at {quote(rest)})"
        after = rest[len(group):]
        if after.startswith("."):
            return f"embedded IPv4 address must replace the final 2 fields of the address (at {quote(rest)})"
        fields += 1
        rest = after
        if not rest:
            break
        if rest[0] != ":":
            return f"unexpected character, want colon (at {quote(rest)})"
        if len(rest) == 1:
            return f"colon must be followed by more characters (at {quote(rest)})"
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                return f"multiple :: in address (at {quote(rest)})"
            ellipsis, rest = fields, rest[1:]
            if not rest:
                break
    if rest:
        return f"trailing garbage after address (at {quote(rest)})"
    return "address string too short" if ellipsis < 0 else "the :: must expand to at least one field of zeros"


def wrong_prefix(text: str) -> str:
    """"" for an address with a prefix length, else the words of Go's netip."""
    if is_cidr(text):
        return ""
    head = f"netip.ParsePrefix({quote(text)}): "
    address, slash, bits = text.rpartition("/")
    if not slash:
        return head + "no '/'"
    if not is_address(address):
        return head + wrong_address(address)
    if "%" in address:
        return head + "IPv6 zones cannot be present in a prefix"
    if not re.fullmatch(r"[0-9]{1,9}", bits) or len(bits) > 1 and bits[0] == "0":
        return head + f"bad bits after slash: {quote(bits)}"
    return head + "prefix length out of range"


def wrong_endpoint(text: str) -> str:
    """"" for the URL of an endpoint, else Talos's words."""
    try:
        url = go_url.parse(text)
    except ValueError as error:
        return f"parse {quote(text)}: {error}"
    if url.host.count(":") > 2 and not ("[" in url.host and "]" in url.host):
        return "IPv6 addresses MUST be enclosed by square brackets"
    if not url.hostname:
        return "hostname must not be blank"
    if url.port and not 1 <= int(url.port) <= 65535:
        return "port number must be between 1 and 65535"
    return ""


def wrong_host_port(text: str) -> str:
    """"" for `host:port`, else the words of Go's net package."""
    head = f"address {text}: " if text else ""
    if text.startswith("["):
        end = text.find("]")
        if end < 0:
            return head + "missing ']' in address"
        if end + 1 == len(text) or text[end + 1] != ":":
            return head + "missing port in address"
        return "" if text.count(":", end) == 1 else head + "too many colons in address"
    if ":" not in text:
        return head + "missing port in address"
    return "" if text.count(":") == 1 else head + "too many colons in address"


def wrong_base64(text: str, length: int = 0, wrong_length: str = "") -> str:
    """"" for base64 (of so many bytes), else the words of Go's encoder, or wrong_length with the number of bytes for its `%d`."""
    body = text.replace("\r", "").replace("\n", "")
    found = re.search(r"[^A-Za-z0-9+/]", body.rstrip("="))
    padded = body.rstrip("=")
    if found or len(body) % 4 or len(body) - len(padded) > 2:
        at = found.start() if found else len(padded) // 4 * 4
        return f"illegal base64 data at input byte {at if found else min(at, len(body))}"
    try:
        raw = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return "illegal base64 data at input byte 0"
    return wrong_length.replace("%d", str(len(raw))) if length and len(raw) != length else ""
