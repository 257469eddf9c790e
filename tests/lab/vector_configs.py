# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recorded configurations with secrets filled in: each `<secret>` and `<cert>` gets what belongs at its place."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

from tests.lab.certificates import certificate_pem, talos_key_pem
from tests.lab.configs import ClusterSecrets

_FILL = {"<registry>": "registry.example.org", "<discovery-host>": "discovery.example.org", "<path>": "example"}


def _hunks(base: str, diff: list[str]) -> str:
    """Applies a unified difference, hunks without file names."""
    lines, out, position = base.split("\n"), [], 0
    for line in diff:
        header = re.match(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", line)
        if header is not None:
            start = int(header.group(1)) - (0 if header.group(2) == "0" else 1)
            out += lines[position:start]
            position = start
        elif line.startswith("+"):
            out.append(line[1:])
        elif line.startswith("-"):
            position += 1
        else:
            out.append(lines[position])
            position += 1
    return "\n".join(out + lines[position:])


class Configs:
    """All configurations of a folder. `text(name, secrets, addresses)` gives one that a node can be sent."""

    def __init__(self, folder: Path) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        with open(folder / "configs.jsonl", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                self.rows[row["name"]] = row

    def names(self, talos: str) -> list[str]:
        return [name for name, row in self.rows.items() if row["talos"] == talos]

    def masked(self, name: str) -> str:
        row = self.rows[name]
        if "text" in row:
            return str(row["text"])
        if row.get("base") is None:
            first = next(other for other in self.rows.values() if other["talos"] == row["talos"] and other.get("kind") == "controlplane")
            found = re.search(r"as (c\d+)", str(row.get("note", "")))
            return self.masked(self._good(found.group(1) if found else str(first["name"])))
        return _hunks(self.masked(row["base"]), row["diff"])

    def _good(self, base: str) -> str:
        """The base with its one unknown key taken away is the configuration that was really used."""
        for name, row in self.rows.items():
            if row.get("base") == base and [line for line in row["diff"] if line[:1] in "+-"] == ["-    nope: 1"]:
                return name
        return base

    def other_secrets(self, name: str) -> bool:
        return self.rows[name].get("base") is None and "text" not in self.rows[name]

    def text(self, name: str, secrets: ClusterSecrets, addresses: dict[str, str], other_ca: ClusterSecrets | None = None) -> str:
        text = self.masked(name)
        for mask, value in _FILL.items():
            text = text.replace(mask, value)
        text = re.sub(r"<ip:(\w+)>", lambda found: addresses.get(found.group(1), "127.0.0.9"), text)
        return _fill(text, secrets, other_ca)


def _fill(text: str, secrets: ClusterSecrets, other_ca: ClusterSecrets | None) -> str:
    """Line by line, with the path of keys that leads to each mask."""
    out: list[str] = []
    path: list[tuple[int, str]] = []
    kind = ""
    for line in text.split("\n"):
        bare = line.strip()
        depth = len(line) - len(line.lstrip(" "))
        if bare == "---":
            path, kind = [], ""
        if bare.startswith("kind: "):
            kind = bare[6:]
        key = re.match(r"^(?:- )?([\w.\-/]+):(?: |$)", bare)
        if bare and key is not None:
            while path and path[-1][0] >= depth:
                path.pop()
            path.append((depth, key.group(1)))
        if bare in ("<secret>", "<cert>"):
            out += [" " * depth + part for part in _block(kind, [name for unused, name in path], bare, secrets).strip().split("\n")]
        elif "<secret>" in line:
            out.append(line.replace("<secret>", _scalar(kind, [name for unused, name in path], secrets, other_ca)))
        else:
            out.append(line)
    return "\n".join(out)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _scalar(kind: str, path: list[str], secrets: ClusterSecrets, other_ca: ClusterSecrets | None) -> str:
    authority = (other_ca or secrets).os
    table = {
        ("machine", "token"): secrets.token, ("machine", "ca", "crt"): _b64(certificate_pem(authority.certificate)),
        ("machine", "ca", "key"): _b64(talos_key_pem(authority.key)), ("cluster", "id"): secrets.id, ("cluster", "secret"): secrets.secret,
        ("cluster", "token"): secrets.bootstrap_token, ("cluster", "secretboxEncryptionSecret"): secrets.secretbox,
        ("cluster", "ca", "crt"): _b64(secrets.k8s[0]), ("cluster", "ca", "key"): _b64(secrets.k8s[1]),
        ("cluster", "aggregatorCA", "crt"): _b64(secrets.aggregator[0]), ("cluster", "aggregatorCA", "key"): _b64(secrets.aggregator[1]),
        ("cluster", "serviceAccount", "key"): _b64(secrets.service_account), ("cluster", "etcd", "ca", "crt"): _b64(secrets.etcd[0]),
        ("cluster", "etcd", "ca", "key"): _b64(secrets.etcd[1]), ("clusterID",): secrets.id, ("clusterSecret",): secrets.secret,
    }
    return table.get(tuple(path), secrets.secretbox)


def _block(kind: str, path: list[str], mask: str, secrets: ClusterSecrets) -> str:
    pair = {"KubeAPIServerCAConfig": secrets.k8s, "KubeAggregatorCAConfig": secrets.aggregator}.get(kind)
    if pair is not None:
        return (pair[0] if mask == "<cert>" else pair[1]).decode()
    return secrets.service_account.decode()
