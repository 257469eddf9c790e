# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts with a form of their own, read and written as Go does it: durations, byte sizes, addresses, MACs."""
from __future__ import annotations

import ipaddress
import math
import re
from fractions import Fraction

_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_LONGEST = (1 << 63) - 1


def parse_duration(text: str) -> int:
    """Nanoseconds of a Go duration (`1h30m`, `1.5s`, `0`). Raises ValueError."""
    rest = text
    sign = 1
    if rest[:1] in ("+", "-"):
        sign = -1 if rest[0] == "-" else 1
        rest = rest[1:]
    if rest == "0":
        return 0
    total = 0
    if not rest:
        raise ValueError("not a duration")
    while rest:
        found = _PART.match(rest)
        if found is None or not (found.group(1) or found.group(2)) or len(found.group(0)) > 60:
            raise ValueError("not a duration")
        unit = _UNITS[found.group(3)]
        total += int(found.group(1) or 0) * unit
        if found.group(2):
            total += int(Fraction(int(found.group(2)), 10 ** len(found.group(2))) * unit)
        rest = rest[found.end():]
    if total > _LONGEST:
        raise ValueError("the duration is too long")
    return sign * total


def format_duration(nanoseconds: int) -> str:
    """Go's text of a duration: `1m30s`, `168h0m0s`, `1.5ms`, `0s`."""
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if rest < 10**9:
        for unit, size in (("ms", 10**6), ("µs", 10**3), ("ns", 1)):
            if rest >= size:
                return sign + _decimal(rest, size) + unit
    seconds = rest % (60 * 10**9)
    minutes = rest // (60 * 10**9)
    text = _decimal(seconds, 10**9) + "s"
    if minutes:
        text = f"{minutes % 60}m{text}"
        if minutes >= 60:
            text = f"{minutes // 60}h{text}"
    return sign + text


def _decimal(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    fraction = str(part).rjust(len(str(unit)) - 1, "0").rstrip("0") if part else ""
    return f"{whole}.{fraction}" if fraction else str(whole)


_BYTE_UNITS = {
    "": 1, "b": 1,
    **{letter + suffix: 1000**power for power, letter in enumerate("kmgtpe", 1) for suffix in ("", "b")},
    **{letter + suffix: 1024**power for power, letter in enumerate("kmgtpe", 1) for suffix in ("i", "ib")},
}
_BYTES = re.compile(r"([0-9.,]*)(.*)\Z", re.DOTALL)
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]*)?\Z|\.[0-9]+\Z")


def parse_bytes(text: str) -> int:
    """Bytes of a size as people write it (`10GB`, `1.5 GiB`, `1024`). Raises ValueError."""
    found = _BYTES.match(text)
    number, unit = (found.group(1).replace(",", ""), found.group(2)) if found else ("", "")
    if not _DECIMAL.match(number) or len(number) > 40:
        raise ValueError(f'strconv.ParseFloat: parsing "{number[:64]}": invalid syntax')
    factor = _BYTE_UNITS.get(unit.strip().lower())
    if factor is None:
        raise ValueError(f"unhandled size name: {unit.strip().lower()[:32]}")
    size = int(float(number) * factor)
    if size >= 1 << 64:
        raise ValueError("the size is too large")
    return size


def format_bytes(size: int) -> str:
    """A size in powers of 1000 with one digit below ten: `1.5 kB`, `10 GB`."""
    if size < 10:
        return f"{size} B"
    power = 0
    value = float(size)
    while value >= 1000 and power < 6:
        value /= 1000
        power += 1
    value = int(value * 10 + 0.5) / 10
    text = f"{value:.1f}" if value < 10 else f"{value:.0f}"
    return f"{text} {('B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB')[power]}"


def parse_address(text: str) -> str:
    """An IPv4 or IPv6 address in its shortest form. Raises ValueError."""
    zone = ""
    if "%" in text:
        text, zone = text.split("%", 1)
        if not zone or ":" not in text:
            raise ValueError("not an IP address")
    return address_text(ipaddress.ip_address(text)) + (f"%{zone}" if zone else "")


def address_text(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return f"::ffff:{mapped}" if mapped is not None else str(address)


def parse_prefix(text: str) -> str:
    """An address with the length of its prefix (`10.0.0.5/24`), host bits kept. Raises ValueError."""
    address, slash, bits = text.rpartition("/")
    if not slash or "%" in address or not re.fullmatch(r"0|[1-9][0-9]{0,2}", bits):
        raise ValueError("not an address with a prefix length")
    parsed = ipaddress.ip_address(address)
    if int(bits) > parsed.max_prefixlen:
        raise ValueError("the prefix length is too large")
    return f"{address_text(parsed)}/{int(bits)}"


def parse_address_port(text: str) -> str:
    """`1.2.3.4:80` or `[fd00::1]:80`. Raises ValueError."""
    address, colon, port = text.rpartition(":")
    if not colon or not re.fullmatch(r"[0-9]+", port) or len(port) > 9 or int(port) > 65535:
        raise ValueError("not an address with a port")
    if address.startswith("[") and address.endswith("]"):
        inner = parse_address(address[1:-1])
        if ":" not in inner:
            raise ValueError("only IPv6 addresses stand in brackets")
        return f"[{inner}]:{int(port)}"
    inner = parse_address(address)
    if ":" in inner:
        raise ValueError("an IPv6 address with a port needs brackets")
    return f"{inner}:{int(port)}"


def parse_mac(text: str) -> str:
    """Bytes in hexadecimal with or without colons, written with colons. Raises ValueError."""
    digits = text.replace(":", "")
    if len(digits) % 2 or not re.fullmatch(r"[0-9a-fA-F]*", digits):
        raise ValueError("not a hardware address")
    lowered = digits.lower()
    return ":".join(lowered[start:start + 2] for start in range(0, len(lowered), 2))


def format_float(number: float) -> str:
    """Go's shortest text of a float, which YAML output uses."""
    if math.isnan(number):
        return ".nan"
    if number in (float("inf"), float("-inf")):
        return ".inf" if number > 0 else "-.inf"
    if number == 0:
        return "-0" if str(number).startswith("-") else "0"
    mantissa, exponent = f"{number!r}e0".split("e")[0:2] if "e" in repr(number) else (repr(number), "0")
    sign = "-" if mantissa.startswith("-") else ""
    whole, dot, part = mantissa.lstrip("-").partition(".")
    digits = (whole + part).lstrip("0")
    point = len(whole) + int(exponent) - (len(whole + part) - len((whole + part).lstrip("0")))
    digits = digits.rstrip("0") or "0"
    if point - 1 < -4 or point - 1 >= 6:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if point - 1 < 0 else '+'}{abs(point - 1):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if len(digits) <= point:
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"
