# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names as Kubernetes takes them: labels, annotations, taints and DNS names, with Talos's messages."""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .verdict import quote

_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_DNS = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_-]{0,62}(\.[a-zA-Z0-9_][a-zA-Z0-9_-]{0,62})*[._]?\Z")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_RESERVED = ("talos.dev/owned-annotations", "talos.dev/owned-labels", "talos.dev/owned-taints")
_ANNOTATIONS_LIMIT = 256 * 1024


def dns_name(name: str) -> bool:
    """Whether the text is a DNS name."""
    return bool(name) and len(name) - name.count(".") <= 255 and _DNS.match(name) is not None


def subdomain(value: str) -> str:
    """"" for a DNS-1123 subdomain, else what is wrong."""
    if len(value) > 253:
        return f"domain name length exceeds limit of 253: {quote(value)}"
    return "" if _SUBDOMAIN.match(value) else f"domain doesn't match required format: {quote(value)}"


def qualified_name(value: str) -> str:
    """"" for `name` or `prefix/name`, else what is wrong."""
    parts = value.split("/")
    if len(parts) > 2:
        return f"invalid format: too many slashes: {quote(value)}"
    name = parts[-1]
    if len(parts) == 2:
        if not parts[0]:
            return f"prefix cannot be empty: {quote(value)}"
        wrong = subdomain(parts[0])
        if wrong:
            return f"prefix {quote(parts[0])} is invalid: {wrong}"
    if not name:
        return f"name cannot be empty: {quote(value)}"
    if len(name) > 63:
        return f"name is too long: {quote(value)} (limit is 63)"
    return "" if _QUALIFIED.match(name) else f"name {quote(name)} is invalid"


def label_value(value: str) -> str:
    """"" for the value of a label, else what is wrong."""
    if len(value) > 63:
        return f"label value length exceeds limit of 63: {quote(value)}"
    return "" if not value or _QUALIFIED.match(value) else f"label value {quote(value)} is invalid"


def wrong_labels(labels: Mapping[str, str]) -> list[str]:
    return [wrong for key in sorted(labels) for wrong in (qualified_name(key), label_value(labels[key])) if wrong]


def wrong_annotations(annotations: Mapping[str, str]) -> list[str]:
    found = []
    for key in sorted(annotations):
        wrong = qualified_name(key)
        if wrong:
            found.append(wrong)
        if key in _RESERVED:
            found.append(f"annotation {quote(key)} is reserved")
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        found.append(f"total annotation size exceeds limit of {_ANNOTATIONS_LIMIT} bytes")
    return found


def wrong_taints(taints: Mapping[str, str]) -> list[str]:
    """Taints as `key: effect` or `key: value:effect`."""
    return [wrong for key in sorted(taints) for wrong in _wrong_taint(key, taints[key])]


def _wrong_taint(key: str, taint: str) -> Iterator[str]:
    wrong = qualified_name(key)
    if wrong:
        yield wrong
        return
    value, colon, effect = taint.partition(":")
    if not colon:
        effect, value = value, ""
    if effect not in _EFFECTS:
        yield f"invalid taint effect: {quote(effect)}"
        return
    wrong = label_value(value) if colon else ""
    if wrong:
        yield wrong
