# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The COSI store of one boot: resources, their versions, and the history that watches are fed from."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.lab import specs
from tests.lab.definitions import Definitions

CREATED, UPDATED, DESTROYED, BOOTSTRAPPED, ERRORED, NOOP = range(6)
HISTORY = 1000


@dataclass(frozen=True)
class Resource:
    """One version of a resource. `spec` is what specs.encode takes."""

    namespace: str
    kind: str
    id: str
    spec: Any
    version: int = 1
    owner: str = ""
    created: float = 0.0
    updated: float = 0.0
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    encoded: list[tuple[bytes, str]] = field(default_factory=list, compare=False)

    def bytes_and_yaml(self, talos: int) -> tuple[bytes, str]:
        if not self.encoded:
            self.encoded.append(specs.encode(self.kind, self.spec, talos))
        return self.encoded[0]


@dataclass(frozen=True)
class Change:
    """One entry of a kind's history; `number` is the position that a bookmark names."""

    number: int
    event: int
    resource: Resource
    old: Resource | None = None


class _Kind:
    """All resources of one type in one namespace."""

    def __init__(self) -> None:
        self.items: dict[str, Resource] = {}
        self.history: deque[Change] = deque(maxlen=HISTORY)
        self.count = 0
        self.watchers: set[asyncio.Queue[Change]] = set()

    def record(self, event: int, resource: Resource, old: Resource | None) -> None:
        self.count += 1
        change = Change(self.count, event, resource, old)
        self.history.append(change)
        for queue in self.watchers:
            queue.put_nowait(change)


class Resources:
    """A node's resources; resource definitions and namespaces are shared by all nodes of a version."""

    def __init__(self, definitions: Definitions, now: Callable[[], float]) -> None:
        self.definitions = definitions
        self._now = now
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self.born = now()

    def kind(self, namespace: str, kind: str) -> _Kind:
        found = self._kinds.get((namespace, kind))
        if found is None:
            found = self._kinds[(namespace, kind)] = _Kind()
            for resource in self.definitions.shared.get((namespace, kind), ()):
                found.items[resource.id] = replace(resource, created=self.born, updated=self.born)
                found.count += 1
                found.history.append(Change(found.count, CREATED, found.items[resource.id]))
        return found

    def get(self, namespace: str, kind: str, name: str) -> Resource | None:
        return self.kind(namespace, kind).items.get(name)

    def list(self, namespace: str, kind: str) -> list[Resource]:
        return [resource for unused, resource in sorted(self.kind(namespace, kind).items.items())]

    def put(self, kind: str, name: str, spec: Any, owner: str = "", annotations: tuple[tuple[str, str], ...] = (), namespace: str | None = None) -> None:
        """Creates or updates; an equal spec changes nothing."""
        place = namespace if namespace is not None else self.definitions.namespace(kind)
        if place is None:
            return  # this version does not have the type
        found = self.kind(place, kind)
        now = self._now()
        old = found.items.get(name)
        if old is None:
            new = Resource(place, kind, name, spec, owner=owner, created=now, updated=now, annotations=annotations)
            found.items[name] = new
            found.record(CREATED, new, None)
        elif old.spec != spec:
            new = replace(old, spec=spec, version=old.version + 1, updated=now, encoded=[])
            found.items[name] = new
            found.record(UPDATED, new, old)

    def drop(self, kind: str, name: str, namespace: str | None = None) -> None:
        place = namespace if namespace is not None else self.definitions.namespace(kind)
        if place is None:
            return
        found = self.kind(place, kind)
        old = found.items.pop(name, None)
        if old is not None:
            found.record(DESTROYED, old, None)

    def keep_only(self, kind: str, names: set[str], namespace: str | None = None) -> None:
        """Drops what is not named."""
        place = namespace if namespace is not None else self.definitions.namespace(kind)
        if place is not None:
            for name in set(self.kind(place, kind).items) - names:
                self.drop(kind, name, place)
