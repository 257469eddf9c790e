# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Kubernetes store: records as custom resources, their status as a subresource (design section 4).

A write goes out with the version that was read, so that the API server refuses it when something else came between; then the
record is read again and the change decided anew. A patch holds only what differs and is made under a field manager of ours.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping

from ..._kube.api import MERGE_PATCH, Api, ApiRefused, ApiSilent
from ..._kube.objects import FIELD_MANAGER
from ..._model.access_policies import MEANT_TO_STAY
from ..._model.approval import approval_state
from ..._model.errors import TalosError
from ..._model.ports import Clock, Leases
from ..._model.records import ALLOW_DELETE, MACHINE, Event, Json, JsonMap, Listing, Record, Ref, text_at
from ..._model.schema import validate
from ..._model.schema_rules import Context
from ..._model.store_place import StorePlace
from ..written import as_status, checked, context_of, record_changed, refuse_lost_status, refuse_tracked
from . import bundle, place
from .events import KubernetesEvents
from .leases import KubernetesLeases
from .listing import PAGE, listing_of, read_all
from .objects import merge_patch, object_of, path_of, record_of
from .refusals import doing
from .watching import Watched

#: How often a status is changed anew because something else changed the record in between.
TRIES = 10
_WRITING = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}


class KubernetesStore:
    """`ports.Store` in one namespace of one API server. `would_be` is the store of a check run that would make it: empty, never asked."""

    def __init__(self, api: Api, namespace: str, clock: Clock, leases: KubernetesLeases, *, would_be: bool = False) -> None:
        self.namespace = namespace
        self._api = api
        self._clock = clock
        self._leases = leases
        self._events = KubernetesEvents(api, namespace, clock)
        self._would_be = would_be
        #: Whether this is who moves the records: it may write where others are refused.
        self.copying = False
        self._watched: dict[str, Watched] = {}

    def place(self) -> StorePlace:
        """Its id, and whether its records are moving."""
        return StorePlace() if self._would_be else place.read(self._api, self.namespace)

    def set_place(self, wanted: StorePlace) -> StorePlace:
        """Say whether its records are moving."""
        return place.write(self._api, self.namespace, wanted)

    def _refuse_moved(self) -> None:
        if not self.copying:
            self.place().refuse(self.description)

    @property
    def description(self) -> str:
        """For messages."""
        return f"namespace {self.namespace} of {self._api.host}"

    def account(self) -> str:
        """The user that the API server sees in the credential of this run."""
        body: JsonMap = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        return text_at(self._asked("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "tell who this is", body), "status", "userInfo", "username")

    @property
    def leases(self) -> Leases:
        """The locks of this store."""
        return self._leases

    def close(self) -> None:
        """End the watches, and close every connection to the API server."""
        for watched in self._watched.values():
            watched.stop()
        self._api.close()

    # Reading.

    def get(self, kind: str, name: str) -> Record | None:
        """The record, or None. Raises `RecordBroken` for one that this version does not understand, and what `store_error` says."""
        found = self._object(Ref(kind, name))
        if found is None:
            return None
        record = record_of(kind, found)
        problems = validate(record, writing=False)
        if problems:
            raise TalosError("RecordBroken", f"{kind} {record.source}: {' '.join(problem.message for problem in problems)}",
                             "Correct it with kubectl; nothing is written over it.")
        return record

    def list(self, kind: str) -> Listing:
        """All records of a kind in the namespace, and what is broken beside them. Here nothing vanishes: what is gone was deleted."""
        return Listing() if self._would_be else listing_of(read_all(self._api, self.namespace, kind, PAGE)[0])

    def recent(self, kind: str) -> Listing:
        """The same as a watch has it: listed once, and at most as old as a watch lags. Not for what is decided under a lock."""
        if self._would_be:
            return Listing()
        if kind not in self._watched:
            self._watched[kind] = Watched(self._api, self.namespace, kind, lambda: PAGE)
        return self._watched[kind].listing()

    def _wrote(self, kind: str, found: JsonMap) -> JsonMap:
        if kind in self._watched:
            self._watched[kind].wrote(text_at(found, "metadata", "resourceVersion"))
        return found

    # Writing.

    def create(self, record: Record) -> Record:
        """A new object, and its status with it. Raises `RecordExists`, `RecordInvalid`."""
        checked(record, None, Context())
        self._refuse_moved()
        with doing(f"create {record.kind} {record.name}", self._api):
            try:
                found = self._api.request("POST", path_of(self.namespace, record.kind), object_of(record, self.namespace), query=_WRITING)
            except ApiRefused as refused:
                if refused.reason != "AlreadyExists":
                    raise
                raise TalosError("RecordExists", f"{record.kind} {record.name} is there already ({self.namespace}/{record.name}).",
                                 "Choose another name, or change that record.") from None
        made = record_of(record.kind, self._wrote(record.kind, found))
        if record.status or approval_state(record) == "approved":
            return self._write_status(made, as_status(record.status, made.uid))
        return made

    def update(self, record: Record, spec: JsonMap, *, annotations: Mapping[str, str] | None = None,
               labels: Mapping[str, str] | None = None, override: bool = False) -> Record:
        """Write a spec over the very one that was read. Raises `RecordChanged`, `RecordTracked`, `Immutable`, `RecordInvalid`."""
        self._refuse_moved()
        for attempt in range(TRIES):
            found, before = self._current(record.ref)
            if before.resource_version != record.resource_version:
                if attempt and before.uid == record.uid and not _patch(before, _wanted(before, spec, labels, annotations)):
                    return before  # the write whose answer was lost
                raise record_changed(before)
            refuse_tracked(before, override)
            wanted = _wanted(before, spec, labels, annotations)
            checked(wanted, before, context_of(before, spec, self.list))
            patch = _patch(before, wanted)
            if not patch:
                return before
            if approval_state(wanted) == "approved" and approval_state(before) != "approved" and record.kind == MACHINE and not before.status:
                # Approving always leaves a status, and leaves it first: an approved machine without one is StatusMissing.
                found = self._patched(found, {"status": as_status({}, before.uid)}, "status") or found
            written = self._patched(found, patch)
            if written is not None:
                return record_of(record.kind, written)
        raise record_changed(record)

    def patch_status(self, ref: Ref, uid: str, change: Callable[[dict[str, object]], dict[str, object]], *,
                     expect: Record | None = None) -> Record:
        """Change the status of the record with that uid, as it is now; tried again when something else came between.

        An approved machine whose status was lost stays so: only a change that sets `recordUID` (a person's trust) gives it
        one again; any other raises `StatusMissing`.
        """
        for dummy in range(TRIES):
            found, record = self._current(ref)
            if record.uid != uid:
                raise record_changed(record)
            if expect is not None and (expect.resource_version, expect.status_version) != (record.resource_version, record.status_version):
                raise record_changed(record)
            status = change(copy.deepcopy(dict(record.status)))
            refuse_lost_status(record, status, "the status")
            new = as_status(status, uid)
            if new == record.status:
                return record
            self._refuse_moved()
            written = self._patched(found, {"status": _status_patch(found, new)}, "status")
            if written is not None:
                return record_of(ref.kind, written)
        raise record_changed(record)

    def delete(self, record: Record) -> None:
        """Remove the record that was read; its status goes with it. Who calls this means it, and the record says so first: else an API
        server with the policies refuses."""
        self._refuse_moved()
        found, now = self._current(record.ref)
        if now.resource_version != record.resource_version or now.uid != record.uid:
            raise record_changed(now)
        meant: dict[str, Json] = {"annotations": {ALLOW_DELETE: "true"}}
        if record.kind in MEANT_TO_STAY and now.annotations.get(ALLOW_DELETE) != "true" and self._patched(found, {"metadata": meant}) is None:
            raise record_changed(now)
        self._asked("DELETE", path_of(self.namespace, record.kind, record.name), f"delete {record.kind} {record.name}",
                    {"preconditions": {"uid": record.uid}})

    def _write_status(self, record: Record, status: dict[str, Json]) -> Record:
        return self.patch_status(record.ref, record.uid, lambda dummy: dict(status))

    def _object(self, ref: Ref) -> JsonMap | None:
        if self._would_be:
            return None
        with doing(f"read {ref.kind} {ref.name}", self._api):
            return self._api.get(path_of(self.namespace, ref.kind, ref.name))

    def _current(self, ref: Ref) -> tuple[JsonMap, Record]:
        found = self._object(ref)
        if found is None:
            raise TalosError("RecordNotFound", f"{ref.kind} {ref.name} is not in the store ({self.description}).",
                             "Look at the name, or create the record first.")
        return found, record_of(ref.kind, found)

    def _patched(self, found: JsonMap, patch: JsonMap, part: str = "") -> JsonMap | None:
        """The object after the patch, or None where it was no longer the one that was read, or nobody knows whether it was written."""
        kind, name = text_at(found, "kind"), text_at(found, "metadata", "name")
        metadata = patch.get("metadata")
        version: dict[str, Json] = {"resourceVersion": text_at(found, "metadata", "resourceVersion")}
        body: dict[str, Json] = {**patch, "metadata": {**metadata, **version} if isinstance(metadata, dict) else version}
        with doing(f"change {'the status of ' if part else ''}{kind} {name}", self._api):
            try:
                return self._wrote(kind, self._api.request("PATCH", path_of(self.namespace, kind, name, part), body, query=_WRITING,
                                                           content_type=MERGE_PATCH))
            except ApiRefused as refused:
                if refused.status != 409:
                    raise
            except ApiSilent as silent:
                if not silent.sent:
                    raise
        return None

    def _asked(self, method: str, path: str, what: str, body: JsonMap | None = None, query: Mapping[str, str] | None = None) -> JsonMap:
        with doing(what, self._api):
            return self._api.request(method, path, body, query=query)

    # Events and secrets.

    def record_event(self, event: Event) -> None:
        """Write an Event, or count the same one up."""
        self._refuse_moved()
        self._events.record(event)

    def events(self, ref: Ref | None = None) -> tuple[Event, ...]:
        """All events that the API server still has, the oldest first, or those of one record."""
        return () if self._would_be else self._events.read(ref)

    def bundle(self, name: str) -> bytes:
        """The secrets bundle in the Secret of that name. Raises `SecretsUnavailable`."""
        return bundle.read(self._api, self.namespace, name)

    def bundle_form(self, name: str) -> str:
        """`absent` or `clear`."""
        return "absent" if self._would_be else bundle.form(self._api, self.namespace, name)

    def write_bundle(self, name: str, data: bytes, *, replace: bool = False) -> None:
        """Put a bundle into the Secret of that name. Raises `RecordExists`."""
        self._refuse_moved()
        bundle.write(self._api, self.namespace, name, data, replace=replace)


def _wanted(before: Record, spec: JsonMap, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> Record:
    return dataclasses.replace(before, spec=spec, labels=before.labels if labels is None else labels,
                               annotations=before.annotations if annotations is None else annotations)


def _patch(before: Record, wanted: Record) -> dict[str, Json]:
    patch: dict[str, Json] = {}
    spec = merge_patch(before.spec, wanted.spec)
    if spec:
        patch["spec"] = spec
    metadata: dict[str, Json] = {}
    for name, old, new in (("labels", before.labels, wanted.labels), ("annotations", before.annotations, wanted.annotations)):
        if dict(old) != dict(new):
            metadata[name] = merge_patch(dict(old), dict(new))
    return {**patch, "metadata": metadata} if metadata else patch


def _status_patch(found: JsonMap, new: JsonMap) -> dict[str, Json]:
    """From what stands there, also where that is another record's status."""
    old = found.get("status")
    return merge_patch(old if isinstance(old, dict) else {}, new)
