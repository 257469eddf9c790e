# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resource types that each Talos version registers, from the recorded files."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "protocol"

_DESCRIPTIONS = {
    "runtime": "Talos v1alpha1 subsystems glue resources.",
    "cluster": "Cluster configuration and discovery resources.",
    "cluster-raw": "Cluster unmerged raw resources.",
    "config": "Talos node configuration.",
    "etcd": "etcd resources.",
    "files": "Files and file-like resources.",
    "hardware": "Hardware resources.",
    "k8s": "Kubernetes all node types resources.",
    "controlplane": "Kubernetes control plane resources.",
    "kubespan": "KubeSpan resources.",
    "network": "Networking resources.",
    "network-config": "Networking configuration resources.",
    "cri": "CRI Seccomp resources.",
    "secrets": "Resources with secret material.",
    "security": "Security resources.",
    "perf": "Stats resources.",
    "meta": "Metadata namespace which contains resource and namespace definitions.",
}
_LATER = {"containers": "Talos-managed container resources.", "storage": "Storage resources."}
_FILES = {12: "resource-definitions-v1.13.9.jsonl", 13: "resource-definitions-v1.13.9.jsonl", 14: "resource-definitions-v1.14.0-rc.1.jsonl"}
_DISK_PATHS = {"Size": "pretty_size", "Read Only": "readonly"}
_NOT_IN_12 = frozenset(("apiserviceconfigs.runtime.talos.dev",))


class Definitions:
    """Types, sensitivity and namespaces of one minor version (12 uses 1.13's list without what came later)."""

    def __init__(self, version: int) -> None:
        from tests.lab.resources import Resource

        self.version = version
        descriptions = dict(_DESCRIPTIONS, **(_LATER if version >= 14 else {}))
        self.namespaces = frozenset(descriptions)
        self._rows: dict[str, dict[str, Any]] = {}
        with open(VECTORS / _FILES[version], encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if version > 12 or row["id"] not in _NOT_IN_12:
                    self._rows[row["id"]] = row
        self._namespace = {row["type"]: row["namespace"] for row in self._rows.values()}
        self.shared: dict[tuple[str, str], list[Resource]] = {
            ("meta", "ResourceDefinitions.meta.cosi.dev"): [
                Resource("meta", "ResourceDefinitions.meta.cosi.dev", name, _spec(row), owner="meta") for name, row in sorted(self._rows.items())
            ],
            ("meta", "Namespaces.meta.cosi.dev"): [
                Resource("meta", "Namespaces.meta.cosi.dev", name, {"description": text}, owner="meta") for name, text in sorted(descriptions.items())
            ],
        }

    def known(self, kind: str) -> bool:
        """The lookup is by the lower-cased type, so a lower-case type passes; the store then has nothing under it."""
        return kind.lower() in self._rows

    def sensitive(self, kind: str) -> bool:
        return bool(self._rows[kind.lower()]["sensitivity"])

    def namespace(self, kind: str) -> str | None:
        """The namespace that a type's resources live in; None when this version has no such type."""
        return self._namespace.get(kind)


def _spec(row: dict[str, Any]) -> dict[str, Any]:
    name = row["type"].partition(".")[0]
    aliases = row["aliases"]
    own = [alias for alias in aliases if not row["id"].startswith(alias + ".") and alias != row["id"]]
    single = own[0] if own else name.lower()
    common = 0
    while common < min(len(name), len(single)) and name[common].lower() == single[common]:
        common += 1
    return {
        "type": row["type"],
        "displayType": name[:common] + single[common:],
        "defaultNamespace": row["namespace"],
        "aliases": own,
        "allAliases": aliases,
        "printColumns": [{"name": column, "jsonPath": "{." + column.lower().replace(" ", "") + "}"} for column in row["columns"]]
        if row["id"] != "disks.block.talos.dev"
        else [{"name": column, "jsonPath": "{." + _DISK_PATHS.get(column, column.lower()) + "}"} for column in row["columns"]],
        "sensitivity": row["sensitivity"],
    }


@functools.lru_cache(maxsize=None)
def definitions(version: int) -> Definitions:
    return Definitions(version)
