# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A configuration encoded anew, as dry-run differences compare it: fields in Talos's order, no comments."""

from __future__ import annotations

from typing import Any

from tests.lab import goyaml
from tests.lab.machineconfig import Config
from tests.lab.schema import flatten, schema


def canonical(config: Config | None) -> str:
    """The configuration encoded anew without comments, documents in their order, as dry-run differences compare it."""
    if config is None:
        return ""
    known = schema(config.version)
    out = []
    for document in config.documents:
        entry = known.config if document.kind == "v1alpha1" else known.kind(document.kind, document.api_version)
        fields = entry["fields"] if entry is not None else []
        out.append(goyaml.dump(_ordered(document.tree, fields)))
    return "---\n".join(out)


def _ordered(tree: dict[str, Any], fields: list[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for item in flatten(fields):
        name = item["n"]
        if name not in tree:
            if not item.get("tags"):
                out[name] = _absent(item)
            continue
        value = tree[name]
        if value is None or ("omitempty" in (item.get("tags") or ()) and value in ("", [], {}, False) and not str(item["t"]).startswith("*")):
            if value is None and not item.get("tags") and str(item["t"]).startswith("[]"):
                out[name] = []
            continue
        out[name] = _ordered_value(value, item)
    for name in tree:
        if name not in out and not any(item["n"] == name for item in flatten(fields)):
            out[name] = tree[name]
    return out


def _absent(item: dict[str, Any]) -> Any:
    """How a field that is always printed looks when nothing was given."""
    kind = str(item["t"])
    if kind.startswith("*"):
        return None
    if kind.startswith("[]"):
        return []
    if kind.startswith("map["):
        return {}
    if kind == "bool":
        return False
    if item.get("f") and not item.get("custom"):
        return _ordered({}, item["f"])
    return 0 if kind.startswith(("int", "uint")) else ""


def _ordered_value(value: Any, item: dict[str, Any]) -> Any:
    nested, kind = item.get("f"), str(item["t"]).lstrip("*")
    if "PEMEncodedCertificateAndKey" in kind and isinstance(value, dict):
        return {"crt": value.get("crt", ""), "key": value.get("key", "")}
    if isinstance(value, list):
        return [_ordered(part, nested) if nested and isinstance(part, dict) else part for part in value]
    if isinstance(value, dict):
        if kind.startswith("map["):
            return {key: _ordered(part, nested) if nested and isinstance(part, dict) else part for key, part in sorted(value.items())}
        return _ordered(value, nested) if nested else value
    return value
