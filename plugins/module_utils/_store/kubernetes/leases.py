# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Locks as Leases of `coordination.k8s.io`, seen by everybody who shares the API server (design section 13)."""

from __future__ import annotations

import dataclasses
import hashlib
from datetime import datetime, timezone

from ..._kube.api import Api, ApiRefused, ApiSilent
from ..._kube.objects import FIELD_MANAGER
from ..._model.errors import TalosError
from ..._model.moments import seconds_of
from ..._model.ports import Clock, LeaseView
from ..._model.records import LEADER, Json, JsonMap, dig, text_at
from ..._model.schema_formats import is_dns_1123
from ..lease_watch import LeaseWatch, lock_held, lock_lost
from . import place
from .objects import leases_path
from .refusals import doing

PURPOSE = "ichor.maesh.dev/purpose"
LOCK = "ichor.maesh.dev/lock"
_PREFIX = "talos-"
_LEADERS = "ichor-"


class KubernetesLeases:
    """`ports.Leases` in one namespace. `renewal` is the interval at which holders renew, in seconds."""

    def __init__(self, api: Api, namespace: str, clock: Clock, *, renewal: float) -> None:
        self._api = api
        self._path = leases_path(namespace)
        self._namespace = namespace
        self._clock = clock
        self._renewal = renewal
        self._watch = LeaseWatch(clock.monotonic)

    def read(self, name: str) -> LeaseView | None:
        """The lease as it is, or None where nobody ever took it; looking at it starts this reader's watch of it."""
        found = self._found(name)
        if found is None:
            return None
        view = _view(name, found)
        if view.holder:
            self._watch.unchanged_for(view)
        return view

    def acquire(self, name: str, holder: str, purpose: str, duration: float, *, stopped: bool = False) -> LeaseView:
        """Take a free, own or expired lease of a store that has not moved away. With `stopped`, the caller knows that the holder has stopped: then one renewal
        interval without a change is enough. Raises `LockHeld`."""
        place.read(self._api, self._namespace).refuse(f"namespace {self._namespace} of {self._api.host}")
        found = self._found(name)
        now = self._clock.now()
        if found is None:
            return self._written("POST", name, self._lease(name, LeaseView(name, holder, purpose, now, now, duration, ""), {}))
        view = _view(name, found)
        if view.holder and view.holder != holder and not self._watch.is_over(view, stopped=stopped, renewal=self._renewal):
            raise lock_held(view)
        since = view.acquired_at if view.holder == holder else now
        return self._written("PUT", name, self._lease(name, LeaseView(name, holder, purpose, since, now, duration, ""), found))

    def renew(self, lease: LeaseView) -> LeaseView:
        """Renew what is still held; the time of acquiring stays. Raises `LockHeld` when it was lost."""
        found = self._found(lease.name)
        if found is None:
            raise lock_lost(lease.name)
        view = _view(lease.name, found)
        if view.version != lease.version and (view.holder, view.acquired_at) != (lease.holder, lease.acquired_at):
            raise lock_held(view) if view.holder else lock_lost(lease.name)
        return self._written("PUT", lease.name, self._lease(lease.name, dataclasses.replace(lease, renewed_at=self._clock.now()), found))

    def release(self, lease: LeaseView) -> None:
        """Give back what is still held. Never raises: what cannot be given back runs out."""
        try:
            found = self._found(lease.name)
            if found is None:
                return
            view = _view(lease.name, found)
            if view.version == lease.version or (view.holder, view.acquired_at) == (lease.holder, lease.acquired_at):
                self._written("PUT", lease.name, self._lease(lease.name, dataclasses.replace(lease, holder=""), found))
        except TalosError:
            return

    def no_lock(self) -> str:
        """'': whoever reaches the API server can lock."""
        return ""

    def take_over(self) -> None:
        """Nothing to do: no place is the only one that locks."""

    def _found(self, name: str) -> JsonMap | None:
        with doing(f"read the lock {name}", self._api):
            return self._api.get(f"{self._path}/{_object_name(name)}")

    def _written(self, method: str, name: str, body: JsonMap) -> LeaseView:
        path = self._path if method == "POST" else f"{self._path}/{_object_name(name)}"
        with doing(f"take the lock {name}", self._api):
            try:
                view = _view(name, self._api.request(method, path, body, query={"fieldManager": FIELD_MANAGER}))
            except ApiSilent as silent:
                seen = self._api.get(f"{self._path}/{_object_name(name)}") if silent.sent else None
                if seen is None or _claim(seen) != _claim(body):
                    raise
                view = _view(name, seen)  # it was written, and the answer was lost
            except ApiRefused as refused:
                if refused.status != 409:
                    raise
                now = self.read(name)
                raise lock_held(now) if now is not None and now.holder else lock_lost(name) from None
        if view.holder:
            self._watch.unchanged_for(view)
        return view

    def _lease(self, name: str, view: LeaseView, found: JsonMap) -> JsonMap:
        turns = dig(found, "spec", "leaseTransitions")
        taken = text_at(found, "spec", "holderIdentity") != view.holder and view.holder != ""
        metadata: dict[str, Json] = {"name": _object_name(name), "namespace": self._namespace, "annotations": {PURPOSE: view.purpose, LOCK: name}}
        version = text_at(found, "metadata", "resourceVersion")
        if version:
            metadata["resourceVersion"] = version
        return {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata,
            "spec": {"holderIdentity": view.holder, "leaseDurationSeconds": max(1, round(view.duration)), "acquireTime": _micro(view.acquired_at),
                     "renewTime": _micro(view.renewed_at), "leaseTransitions": (turns if isinstance(turns, int) else 0) + int(taken)},
        }


def _view(name: str, found: JsonMap) -> LeaseView:
    duration = dig(found, "spec", "leaseDurationSeconds")
    return LeaseView(name, text_at(found, "spec", "holderIdentity"), text_at(found, "metadata", "annotations", PURPOSE),
                     seconds_of(text_at(found, "spec", "acquireTime")) or 0.0, seconds_of(text_at(found, "spec", "renewTime")) or 0.0,
                     float(duration) if isinstance(duration, int) else 60.0, text_at(found, "metadata", "resourceVersion"))


def _claim(lease: JsonMap) -> tuple[str, float | None, float | None]:
    """Who has it, since when, and when that was last said."""
    return (text_at(lease, "spec", "holderIdentity"), seconds_of(text_at(lease, "spec", "acquireTime")), seconds_of(text_at(lease, "spec", "renewTime")))


def _object_name(name: str) -> str:
    """A lock's name is a cluster's, a leader's, or names a foreign cluster by an id that no object could be called."""
    leader = name.removeprefix(LEADER)
    if leader != name and is_dns_1123(leader) and len(leader) <= 200:
        return f"{_LEADERS}{leader}"
    if is_dns_1123(name) and len(name) <= 200:
        return _PREFIX + name
    return f"{_PREFIX}id-{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _micro(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
