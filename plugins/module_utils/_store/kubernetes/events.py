# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What happened to records as Kubernetes Events: the same thing again is counted up, not written anew (design section 4)."""

from __future__ import annotations

import hashlib

from ..._kube.api import MERGE_PATCH, Api, ApiRefused
from ..._kube.objects import FIELD_MANAGER
from ..._model.moments import moment
from ..._model.ports import Clock
from ..._model.records import API_VERSION, Event, Json, JsonMap, Ref, dig, list_at, text_at
from .refusals import doing

REPORTER = "ichor.talos"
_LONGEST_MESSAGE = 1024
#: An Event that is there may be gone at the next request, since the API server forgets them by and by.
_TRIES = 3


class KubernetesEvents:
    """Events of the records of one namespace."""

    def __init__(self, api: Api, namespace: str, clock: Clock) -> None:
        self._api = api
        self._namespace = namespace
        self._path = f"/api/v1/namespaces/{namespace}/events"
        self._clock = clock

    def record(self, event: Event) -> None:
        """Write it, or count it up where the same was told before. Raises TalosError as `store_error` says."""
        name = f"{event.ref.name[:200]}.{_digest(event)}"
        now = moment(self._clock.now())
        with doing(f"write an event of {event.ref.kind} {event.ref.name}", self._api):
            for left in reversed(range(_TRIES)):
                try:
                    self._api.request("POST", self._path, self._event(event, name, now), query={"fieldManager": FIELD_MANAGER})
                    return
                except ApiRefused as refused:
                    if refused.reason != "AlreadyExists":
                        raise
                try:
                    self._count_up(name, now)
                    return
                except ApiRefused as refused:
                    if refused.status != 404 or not refused.names_object or not left:
                        raise

    def _count_up(self, name: str, now: str) -> None:
        count = dig(self._api.get(f"{self._path}/{name}") or {}, "count")
        self._api.request("PATCH", f"{self._path}/{name}", {"count": (count if isinstance(count, int) else 1) + 1, "lastTimestamp": now},
                          query={"fieldManager": FIELD_MANAGER}, content_type=MERGE_PATCH)

    def read(self, ref: Ref | None) -> tuple[Event, ...]:
        """Events of ours that are still kept, in the order in which they were last told."""
        fields = f"reportingComponent={REPORTER}"
        if ref is not None:
            fields += f",involvedObject.kind={ref.kind},involvedObject.name={ref.name}"
        with doing("list events", self._api):
            answer = self._api.request("GET", self._path, query={"fieldSelector": fields})
        items = [item for item in list_at(answer, "items") if isinstance(item, dict)]
        return tuple(_event_of(item) for item in sorted(items, key=_told))

    def _event(self, event: Event, name: str, now: str) -> JsonMap:
        involved: dict[str, Json] = {"apiVersion": API_VERSION, "kind": event.ref.kind, "name": event.ref.name, "namespace": self._namespace}
        return {
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": self._namespace}, "involvedObject": involved,
            "type": event.type, "reason": event.reason, "message": event.message[:_LONGEST_MESSAGE], "count": 1, "firstTimestamp": event.time or now,
            "lastTimestamp": event.time or now, "reportingComponent": REPORTER, "reportingInstance": REPORTER, "source": {"component": REPORTER},
        }


def _event_of(item: JsonMap) -> Event:
    ref = Ref(text_at(item, "involvedObject", "kind"), text_at(item, "involvedObject", "name"))
    return Event(ref, text_at(item, "type"), text_at(item, "reason"), text_at(item, "message"), text_at(item, "lastTimestamp"))


def _told(item: JsonMap) -> tuple[str, int]:
    version = text_at(item, "metadata", "resourceVersion")
    return text_at(item, "lastTimestamp"), int(version) if version.isdigit() else 0


def _digest(event: Event) -> str:
    told = "\n".join((event.ref.kind, event.ref.name, event.type, event.reason, event.message))
    return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:16]
