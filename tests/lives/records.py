# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The records of a scenario, as a person sees and edits them past the product: a folder, or a namespace of a real API server.

`ICHOR_TEST_STORE` says which of the two the scenarios take that run on both: `directory`, which is the default, or `kubernetes`. Kinds are called as
their folders are: machines, clusters, patches, reclaims, backups.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from tests.parts.apiserver import ADMIN_TOKEN, ApiServer, running

STORE = os.environ.get("ICHOR_TEST_STORE", "directory")
PLURALS = {"machines": "talosmachines", "clusters": "talosclusters", "patches": "talosconfigpatches", "reclaims": "machinereclaims",
           "backups": "talosetcdbackups"}
GROUP = "ichor.maesh.dev/v1alpha1"


class Records(Protocol):
    """What both have. `options` name the store for a module, `environment` for a whole ansible-playbook in whose folder it is, and `recorded` for what
    records its results."""

    @property
    def is_of_files(self) -> bool: ...

    @property
    def options(self) -> dict[str, Any]: ...

    @property
    def environment(self) -> dict[str, str]: ...

    @property
    def recorded(self) -> dict[str, str]: ...

    @property
    def variables(self) -> dict[str, Any]:
        """The variables of playbooks that name the store beside the environment."""

    def record(self, kind: str, name: str) -> dict[str, Any] | None:
        """The record as a person reads it; None where there is none."""

    def names(self, kind: str) -> list[str]: ...

    def status(self, kind: str, name: str) -> dict[str, Any]: ...

    def change_status(self, kind: str, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None: ...

    def lose_status(self, kind: str, name: str) -> Callable[[], object]:
        """What is given back puts it there again."""

    def events(self) -> list[dict[str, Any]]:
        """Each with `reason`, `type` and the `name` of its record."""

    def everything(self) -> dict[str, str]:
        """Every text of the store, by name."""

    def written(self) -> dict[str, str]:
        """What people and modules wrote, by name: the records without their status, and bundles."""

    def holders(self) -> dict[str, str]:
        """Who holds which lock; '' for one that is free."""

    def edit(self, kind: str, name: str, change: Callable[[str], str]) -> None:
        """As a person with an editor."""

    def put(self, kind: str, record: dict[str, Any]) -> None:
        """As a person who writes the whole record anew."""

    def remove(self, kind: str, name: str) -> None: ...

    def bundle(self, name: str = "prod") -> bytes: ...

    def put_bundle(self, data: bytes, name: str = "prod") -> None: ...

    def another(self, folder: Path) -> Records:
        """A store that shares nothing with this one; `folder` is where it is if it is of files."""


class Indented(yaml.SafeDumper):
    """Lists stand below their key as in the files of a directory store."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


@dataclass(frozen=True)
class Folder:
    """A directory store."""

    path: Path

    @property
    def is_of_files(self) -> bool:
        return True

    @property
    def options(self) -> dict[str, Any]:
        return {"store_path": str(self.path)}

    @property
    def environment(self) -> dict[str, str]:
        return {}

    @property
    def recorded(self) -> dict[str, str]:
        return {"RECORD_STORE": str(self.path)}

    @property
    def variables(self) -> dict[str, Any]:
        return {"ichor_store_path": str(self.path)}

    def record(self, kind: str, name: str) -> dict[str, Any] | None:
        path = self._file(kind, name)
        return dict(yaml.safe_load(path.read_text(encoding="utf-8"))) if path.exists() else None

    def names(self, kind: str) -> list[str]:
        return sorted(path.stem for path in (self.path / kind).glob("*.yaml"))

    def status(self, kind: str, name: str) -> dict[str, Any]:
        return dict(json.loads(self._state(kind, name).read_text(encoding="utf-8"))["status"])

    def change_status(self, kind: str, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        content = json.loads(self._state(kind, name).read_text(encoding="utf-8"))
        self._state(kind, name).write_text(json.dumps({**content, "status": change(content["status"])}), encoding="utf-8")

    def lose_status(self, kind: str, name: str) -> Callable[[], object]:
        text = self._state(kind, name).read_text(encoding="utf-8")
        self._state(kind, name).unlink()
        return lambda: self._state(kind, name).write_text(text, encoding="utf-8")

    def events(self) -> list[dict[str, Any]]:
        path = self.path / ".state" / "events.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    def everything(self) -> dict[str, str]:
        """Every file but the lock's, which every reader touches."""
        files = (path for path in sorted(self.path.rglob("*")) if path.is_file() and path.name != "lock")
        return {str(path.relative_to(self.path)): path.read_text(encoding="utf-8", errors="surrogateescape") for path in files}

    def written(self) -> dict[str, str]:
        return {name: text for name, text in self.everything().items() if not name.startswith(".state")}

    def holders(self) -> dict[str, str]:
        found = ((path.stem, path.read_text(encoding="utf-8")) for path in (self.path / ".state" / "leases").glob("*.json"))
        return {name: str(json.loads(text).get("holder") or "") for name, text in found}

    def edit(self, kind: str, name: str, change: Callable[[str], str]) -> None:
        path = self._file(kind, name)
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")

    def put(self, kind: str, record: dict[str, Any]) -> None:
        path = self._file(kind, record["metadata"]["name"])
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(record), encoding="utf-8")

    def remove(self, kind: str, name: str) -> None:
        self._file(kind, name).unlink()

    def bundle(self, name: str = "prod") -> bytes:
        return (self.path / "secrets" / f"{name}.yaml").read_bytes()

    def put_bundle(self, data: bytes, name: str = "prod") -> None:
        path = self.path / "secrets" / f"{name}.yaml"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(data)

    def another(self, folder: Path) -> Records:
        return Folder(folder)

    def _state(self, kind: str, name: str) -> Path:
        return self.path / ".state" / kind / f"{name}.json"

    def _file(self, kind: str, name: str) -> Path:
        return self.path / kind / f"{name}.yaml"


@dataclass(frozen=True)
class Namespace:
    """A Kubernetes store."""

    server: ApiServer
    name: str = "ichor-system"

    @property
    def is_of_files(self) -> bool:
        return False

    @property
    def options(self) -> dict[str, Any]:
        return {"store": "kubernetes", "store_kubeconfig": str(self.server.kubeconfig), "store_namespace": self.name}

    @property
    def environment(self) -> dict[str, str]:
        return {"ICHOR_STORE": "kubernetes", "ICHOR_STORE_KUBECONFIG": str(self.server.kubeconfig), "ICHOR_STORE_NAMESPACE": self.name}

    @property
    def recorded(self) -> dict[str, str]:
        return {"RECORD_API": json.dumps({"port": self.server.port, "token": ADMIN_TOKEN, "paths": self._listings()})}

    @property
    def variables(self) -> dict[str, Any]:
        return {}

    def record(self, kind: str, name: str) -> dict[str, Any] | None:
        try:
            return self._read(self._path(kind, name))
        except FileNotFoundError:
            return None

    def names(self, kind: str) -> list[str]:
        try:
            return sorted(item["metadata"]["name"] for item in self._read(self._path(kind))["items"])
        except FileNotFoundError:
            return []

    def change_status(self, kind: str, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        record = self._read(self._path(kind, name))
        self.server.read(f"{self._path(kind, name)}/status", {**record, "status": change(record.get("status") or {})}, "PUT")

    def lose_status(self, kind: str, name: str) -> Callable[[], object]:
        record = self._read(self._path(kind, name))
        status = record.pop("status")
        self.server.read(f"{self._path(kind, name)}/status", record, "PUT")
        return lambda: self.change_status(kind, name, lambda unused: status)

    def status(self, kind: str, name: str) -> dict[str, Any]:
        return dict(self._read(self._path(kind, name)).get("status") or {})

    def events(self) -> list[dict[str, Any]]:
        found = self._read(f"/api/v1/namespaces/{self.name}/events")["items"]
        return [{"reason": event["reason"], "type": event["type"], "name": event["involvedObject"]["name"]} for event in found]

    def everything(self) -> dict[str, str]:
        found = {}
        for path in self._listings():
            try:
                found[path] = json.dumps(self._read(path)["items"], indent=1)
            except FileNotFoundError:
                continue
        return found

    def written(self) -> dict[str, str]:
        found = {f"secrets/{secret['metadata']['name']}": json.dumps(secret["data"]) for secret in self._read(self._secrets)["items"]}
        for kind in PLURALS:
            for name in self.names(kind):
                record = self._read(self._path(kind, name))
                found[f"{kind}/{name}"] = json.dumps({"annotations": record["metadata"].get("annotations"), "spec": record["spec"]}, indent=1)
        return found

    def edit(self, kind: str, name: str, change: Callable[[str], str]) -> None:
        record = self._read(self._path(kind, name))
        record["metadata"].pop("managedFields", None)
        self.server.read(self._path(kind, name), yaml.safe_load(change(yaml.dump(record, Dumper=Indented))), "PUT")

    def put(self, kind: str, record: dict[str, Any]) -> None:
        there = self.record(kind, record["metadata"]["name"])
        if there is None:
            self.server.read(self._path(kind), record)
        else:
            self.server.read(self._path(kind, record["metadata"]["name"]), {**there, "spec": record["spec"]}, "PUT")

    def remove(self, kind: str, name: str) -> None:
        self.server.read(self._path(kind, name), method="DELETE")

    def bundle(self, name: str = "prod") -> bytes:
        return base64.b64decode(self._read(f"{self._secrets}/{name}")["data"]["secrets.yaml"])

    def put_bundle(self, data: bytes, name: str = "prod") -> None:
        self.server.read(self._secrets, {"metadata": {"name": name}, "data": {"secrets.yaml": base64.b64encode(data).decode()}})

    def another(self, folder: Path) -> Records:
        return Namespace(self.server, f"t-{uuid.uuid4().hex[:12]}")

    def holders(self) -> dict[str, str]:
        leases = self._read(f"/apis/coordination.k8s.io/v1/namespaces/{self.name}/leases")["items"]
        return {lease["metadata"]["name"]: lease["spec"].get("holderIdentity") or "" for lease in leases}

    def changed(self, since: float) -> list[str]:
        """Verb, resource and name of what the product changed since a moment, as the API server's audit log has it."""
        found = []
        for line in self.server.audit.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry.get("userAgent") != "ichor.talos" or entry["verb"] in ("get", "list", "watch") or entry["responseStatus"]["code"] >= 300:
                continue
            at, thing = datetime.datetime.fromisoformat(entry["requestReceivedTimestamp"].replace("Z", "+00:00")).timestamp(), entry["objectRef"]
            if at >= since and thing["resource"] != "selfsubjectreviews":
                found.append(f"{entry['verb']} {'/'.join(filter(None, (thing['resource'], thing.get('subresource'))))} {thing.get('name', '')}")
        return found

    def _listings(self) -> list[str]:
        return [*(self._path(kind) for kind in PLURALS), f"/api/v1/namespaces/{self.name}/events",
                f"/apis/coordination.k8s.io/v1/namespaces/{self.name}/leases"]

    @property
    def _secrets(self) -> str:
        return f"/api/v1/namespaces/{self.name}/secrets"

    def _path(self, kind: str, name: str = "") -> str:
        return f"/apis/{GROUP}/namespaces/{self.name}/{PLURALS[kind]}{'/' + name if name else ''}"

    def _read(self, path: str) -> dict[str, Any]:
        return dict(json.loads(self.server.read(path)))


@contextmanager
def chosen(folder: Path, store: str = STORE) -> Iterator[Records]:
    """The records of a scenario whose store may be either; `folder` is where a directory store is."""
    if store == "kubernetes":
        with running() as server:
            yield Namespace(server)
    else:
        yield Folder(folder)
