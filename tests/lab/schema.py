# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The document kinds of each Talos version with their fields, from the recorded structure files."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
_FILES = {12: "fields-v1.12.11.json", 13: "fields-v1.13.9.json", 14: "fields-v1.14.0-rc.1.json"}


class Schema:
    """All kinds of one version. A field is a dict: `n` name, `t` Go type, `tags`, `f` nested fields."""

    def __init__(self, version: int) -> None:
        with open(VECTORS / _FILES[version], encoding="utf-8") as source:
            self._kinds = {entry["kind"]: entry for entry in json.load(source)}
        self.config: dict[str, Any] = self._kinds["v1alpha1"]

    def kind(self, name: str, api_version: str) -> dict[str, Any] | None:
        entry = self._kinds.get(name)
        return entry if entry is not None and name != "v1alpha1" and api_version in entry["v"] else None

    def control_plane_kinds(self) -> set[str]:
        return {name for name, entry in self._kinds.items() if entry["cponly"]}


def flatten(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fields with inlined structures put in place."""
    out: list[dict[str, Any]] = []
    for field in fields:
        if field.get("inline") and str(field["t"]).startswith("map["):
            continue
        out.extend(flatten(field["f"]) if field.get("inline") and field.get("f") else [field])
    return out


def unknown(tree: Any, fields: list[dict[str, Any]] | None) -> Any:
    """The part of `tree` that no field takes, as a tree of the same shape; None when all is known."""
    if not isinstance(tree, dict) or fields is None or any(field.get("inline") and str(field["t"]).startswith("map[") for field in fields):
        return None  # a free-form mapping takes anything
    known = {field["n"]: field for field in flatten(fields)}
    out: dict[Any, Any] = {}
    for key, value in tree.items():
        field = known.get(key)
        if field is None:
            out[key] = value
            continue
        rest = unknown_in(value, field)
        if rest is not None:
            out[key] = rest
    return out or None


def unknown_in(value: Any, field: dict[str, Any]) -> Any:
    nested = field.get("f")
    if not nested:
        return None
    kind = str(field["t"]).lstrip("*")
    if kind.startswith("[]") or isinstance(value, list):
        rests = [unknown(item, nested) for item in value] if isinstance(value, list) else []
        return [rest for rest in rests if rest is not None] or None
    if kind.startswith("map[") and isinstance(value, dict):
        found = {key: rest for key, rest in ((key, unknown(item, nested)) for key, item in value.items()) if rest is not None}
        return found or None
    return unknown(value, nested)


@functools.lru_cache(maxsize=None)
def schema(version: int) -> Schema:
    return Schema(version)
