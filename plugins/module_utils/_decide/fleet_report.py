# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fleet as one document (design section 18, "Report"): what is told of clusters and machines, put in the order in which a person asks.

Everything in it is plain data and no longer than a page can show; the page is made from it and from nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .._model.moments import moment, seconds_of
from .._model.records import HOLD_APPLY, Event, Json, dig, list_at, text_at
from .moments_shown import age

FORMAT = "ichor.talos/report/v1"
#: Reasons of a machine that is on its way and needs nobody.
MOVING = frozenset({"ConfigStored", "AwaitingInstall", "NodeInstalling", "NodeRebooting", "NodeStarting"})
#: In this order: what wants a person first.
STATES = ("attention", "pending", "moving", "well", "rejected")
_EVENTS = 500
_DAY = 86_400.0
_LONGEST = 600


@dataclass(frozen=True)
class CertificateSeen:
    """A certificate that somebody may have to renew. `not_after` in UTC seconds; `renews`: Talos makes the next one by itself."""

    what: str
    cluster: str
    not_after: float
    renews: bool = False


@dataclass(frozen=True)
class FleetSeen:
    """What was read, as `talos_cluster_info`, `talos_machine_info` and `talos_config_info` show it, and what lies beside the records."""

    store: str
    clusters: Sequence[Json] = ()
    machines: Sequence[Json] = ()
    configs: Sequence[Json] = ()
    broken: Sequence[Json] = ()
    events: Sequence[Event] = ()
    certificates: Sequence[CertificateSeen] = ()
    #: The entries of a saved plan; None where none was given.
    plans: Sequence[Json] | None = None
    title: str = ""
    notes: Sequence[str] = field(default_factory=tuple)


def fleet_report(seen: FleetSeen, now: float) -> dict[str, Json]:
    """The document. `now` in UTC seconds."""
    drift = [entry for entry in map(_drift, seen.configs) if entry is not None]
    drifted = {text_at(entry, "machine") for entry in drift}
    machines = sorted((_machine(entry, drifted, now) for entry in seen.machines),
                      key=lambda row: (str(row["cluster"]), STATES.index(str(row["state"])), str(row["role"]) != "controlplane", str(row["name"])))
    shown: list[Json] = [*machines]
    clusters: list[Json] = [_cluster(entry, machines, now) for entry in seen.clusters]
    return {
        "format": FORMAT, "title": _cut(seen.title) or "Talos fleet", "made_at": moment(now), "store": seen.store, "notes": [*seen.notes],
        "totals": _totals(machines, len(clusters), len(drift)), "clusters": clusters, "machines": shown, "waits": _waits(clusters, machines),
        "drift": [*drift], "certificates": _certificates(seen.certificates, now), "events": _events(seen.events, now),
        "plan": _plan(seen.plans), "broken": [*seen.broken],
    }


def _machine(entry: Json, drifted: Iterable[str], now: float) -> dict[str, Json]:
    name, ready = text_at(entry, "metadata", "name"), _condition(entry, "Ready")
    approval, reason = text_at(entry, "spec", "approvalState") or "pending", text_at(ready, "reason")
    answers = dig(entry, "node", "answers")
    since = text_at(entry, "doing", "since") or text_at(ready, "lastTransitionTime")
    row: dict[str, Json] = {
        "name": name, "cluster": text_at(entry, "spec", "clusterRef"), "role": text_at(entry, "spec", "role"),
        "hostname": text_at(entry, "spec", "hostname"), "address": text_at(entry, "dial_endpoint"), "approval": approval,
        "stage": text_at(entry, "node", "stage") or text_at(entry, "status", "stage"), "ready": text_at(ready, "status") == "True",
        "reason": reason or ("PendingApproval" if approval == "pending" else ""), "message": _cut(text_at(ready, "message")),
        "talos_version": text_at(entry, "node", "talos_version") or text_at(entry, "status", "talosVersion"),
        "answers": answers if isinstance(answers, bool) else None, "since": since, "age": age(since, now), "what": _cut(text_at(entry, "doing", "what")),
        "waiting_for": _cut(text_at(entry, "doing", "waiting_for")), "advice": _cut(text_at(entry, "doing", "advice")),
        "held": text_at(entry, "metadata", "annotations", HOLD_APPLY) == "true", "drifted": name in drifted,
    }
    row["state"] = _state(row)
    return row


def _state(row: Mapping[str, Json]) -> str:
    if row["approval"] != "approved":
        return "rejected" if row["approval"] == "rejected" else "pending"
    if row["answers"] is False:
        return "attention"
    if row["ready"]:
        return "attention" if row["drifted"] else "well"
    return "moving" if row["reason"] in MOVING else "attention"


def _cluster(entry: Json, machines: Sequence[Mapping[str, Json]], now: float) -> Json:
    name = text_at(entry, "metadata", "name")
    own = [row for row in machines if row["cluster"] == name]
    approved = [row for row in own if row["approval"] == "approved"]
    states: dict[str, Json] = {state: sum(row["state"] == state for row in own) for state in STATES}
    since = text_at(entry, "doing", "since")
    return {
        "name": name, "endpoint": text_at(entry, "spec", "endpoint"), "talos_version": text_at(entry, "spec", "talosVersion"),
        "kubernetes_version": text_at(entry, "spec", "kubernetesVersion"), "control_planes": dig(entry, "spec", "controlPlane", "count"),
        "approved": len(approved), "ready": sum(bool(row["ready"]) for row in approved), "states": states,
        "bootstrapped_at": text_at(entry, "status", "bootstrappedAt"), "lock": dig(entry, "lock"), "etcd": [*list_at(entry, "etcd")],
        "conditions": [{key: _cut(text_at(one, key)) for key in ("type", "status", "reason", "message")} for one in list_at(entry, "status", "conditions")],
        "what": _cut(text_at(entry, "doing", "what")), "waiting_for": _cut(text_at(entry, "doing", "waiting_for")),
        "advice": _cut(text_at(entry, "doing", "advice")), "since": since, "age": age(since, now),
    }


def _waits(clusters: Sequence[Json], machines: Sequence[Mapping[str, Json]]) -> list[Json]:
    """Who waits for what, and what to do: of whom the same is to be said stand together."""
    found: dict[tuple[str, str, str, str, str], list[Json]] = {}
    for cluster in clusters:
        if text_at(cluster, "waiting_for"):
            key = ("cluster", text_at(cluster, "name"), text_at(cluster, "what"), text_at(cluster, "waiting_for"), text_at(cluster, "advice"))
            found.setdefault(key, []).append(text_at(cluster, "name"))
    for row in machines:
        if row["state"] in ("well", "rejected") and not row["waiting_for"]:
            continue
        what = str(row["what"] or row["message"] or row["reason"])
        found.setdefault((str(row["state"]), str(row["cluster"]), what, str(row["waiting_for"]), str(row["advice"])), []).append(row["name"])
    order = ("attention", "cluster", *STATES[1:])
    return [{"kind": kind, "cluster": cluster, "who": who, "what": what, "waits_for": waits, "advice": advice}
            for (kind, cluster, what, waits, advice), who in sorted(found.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))]


def _drift(entry: Json) -> dict[str, Json] | None:
    """One machine that does not run what its records say, by path; None where nothing is to be shown."""
    paths: list[Json] = [{**one, "authority": key == "authority"} for key in ("differences", "authority") for one in list_at(entry, key)
                         if isinstance(one, dict)]
    if not paths and text_at(entry, "reason") != "Drifted":
        return None
    return {"machine": text_at(entry, "name"), "cluster": text_at(entry, "cluster"), "reason": text_at(entry, "reason"),
            "message": _cut(text_at(entry, "message")), "paths": paths, "reboot": [*list_at(entry, "reboot")]}


def _certificates(found: Iterable[CertificateSeen], now: float) -> list[Json]:
    return [{"what": one.what, "cluster": one.cluster, "not_after": moment(one.not_after), "days": int((one.not_after - now) // _DAY),
             "ended": one.not_after <= now, "renews": one.renews}
            for one in sorted(found, key=lambda one: (one.renews and one.not_after > now, one.not_after, one.cluster, one.what))]


def _events(events: Iterable[Event], now: float) -> list[Json]:
    """The newest ones, newest first."""
    ordered = sorted(events, key=lambda event: seconds_of(event.time) or 0.0, reverse=True)[:_EVENTS]
    return [{"time": event.time, "age": age(event.time, now), "type": event.type, "reason": event.reason, "kind": event.ref.kind,
             "name": event.ref.name, "message": _cut(event.message)} for event in ordered]


def _plan(plans: Sequence[Json] | None) -> Json:
    """The steps of all tasks of a saved plan in their order; null where none was given."""
    if plans is None:
        return None
    steps: list[Json] = []
    for plan in plans:
        done = list_at(plan, "done")
        for step in list_at(plan, "steps"):
            described = dig(step, "description")
            if isinstance(described, dict):
                steps.append({**described, "module": text_at(plan, "module"), "done": text_at(step, "id") in done})
    notes = {key: [note for plan in plans for note in list_at(plan, key)] for key in ("refusals", "warnings", "waits")}
    return {"ids": [{"module": text_at(plan, "module"), "plan_id": text_at(plan, "plan_id")} for plan in plans], "steps": steps, **notes}


def _totals(machines: Sequence[Mapping[str, Json]], clusters: int, drifted: int) -> Json:
    approved = [row for row in machines if row["approval"] == "approved"]
    return {
        "clusters": clusters, "machines": len(machines), "approved": len(approved), "ready": sum(bool(row["ready"]) for row in approved),
        "unreachable": sum(row["answers"] is False for row in machines), "drifted": drifted,
        **{state: sum(row["state"] == state for row in machines) for state in STATES},
    }


def _condition(entry: Json, kind: str) -> Json:
    return next((one for one in list_at(entry, "status", "conditions") if text_at(one, "type") == kind), None)


def _cut(text: str) -> str:
    """What a node says is as long as it likes; a page is not."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST - 1]}…"
