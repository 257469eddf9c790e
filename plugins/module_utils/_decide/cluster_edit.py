# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A person's edits of a cluster's record (design sections 3 and 13)."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from .._model.addresses import expand
from .._model.approval import approval_state, tracked_by
from .._model.errors import TalosError
from .._model.machine import cluster_of
from .._model.plan import Plan, Refusal, Step, Target, Warn
from .._model.records import ALLOW_DELETE, CLUSTER, Broken, Json, Record, dig, list_at, text_at
from .._model.schema import validate
from .._model.schema_rules import Context
from .change_words import changes
from .cni_values import owned_in, secret_paths

#: Blocks whose keys are set one by one; everything else that is given replaces what was there.
MERGED = ("network", "cni", "controlPlane", "discovery", "install")


@dataclass(frozen=True)
class ClusterEdit:
    """What a person wants of a cluster. `settings` is a part of the spec in its own spelling; a value None takes the key away.

    `clear_operation` and `clear_disruption` name what `status.operation` and `status.disruption` hold, to clear it.
    """

    name: str
    settings: Mapping[str, Json] = field(default_factory=dict)
    absent: bool = False
    allow_delete: bool = False
    clear_operation: str = ""
    clear_disruption: str = ""
    override: bool = False
    take_over: bool = False


@dataclass(frozen=True)
class ClusterSeen:
    """What was read: the record or None, and the machines of all clusters."""

    cluster: Record | None
    machines: tuple[Record, ...] = ()
    broken: Broken | None = None
    #: Why this place cannot lock the store, or ''.
    no_lock: str = ""
    #: The bundle that the record would name and that is not in the store, or ''.
    no_bundle: str = ""


@dataclass(frozen=True)
class TakeOverStore(Step):
    """Make this place the one that locks the store: every other folder of the same tree loses its lock (section 4)."""

    action: ClassVar[str] = "TakeOverStore"


@dataclass(frozen=True)
class CreateCluster(Step):
    """Create the record of a cluster."""

    action: ClassVar[str] = "CreateCluster"

    settings: Mapping[str, Json] = field(default_factory=dict, metadata={"plan": "digest"})
    record: Record = field(default_factory=lambda: Record(CLUSTER, ""), metadata={"plan": "skip"})


@dataclass(frozen=True)
class EditCluster(Step):
    """Write a person's edits into the record."""

    action: ClassVar[str] = "EditCluster"

    settings: Mapping[str, Json] = field(default_factory=dict, metadata={"plan": "digest"})
    before: Record = field(default_factory=lambda: Record(CLUSTER, ""), metadata={"plan": "skip"})
    spec: Mapping[str, Json] = field(default_factory=dict, metadata={"plan": "skip"})
    override: bool = field(default=False, metadata={"plan": "skip"})


@dataclass(frozen=True)
class ClearStatus(Step):
    """Take away what the status says is under way, because a person knows that it is over."""

    action: ClassVar[str] = "ClearStatus"

    what: str = ""
    named: str = ""


@dataclass(frozen=True)
class DeleteCluster(Step):
    """Delete the record of a cluster without machines."""

    action: ClassVar[str] = "DeleteCluster"
    reversible: ClassVar[bool] = False

    before: Record = field(default_factory=lambda: Record(CLUSTER, ""), metadata={"plan": "skip"})


@dataclass(frozen=True)
class _Case:
    """One cluster and what a person wants of it."""

    edit: ClusterEdit
    seen: ClusterSeen

    @cached_property
    def target(self) -> Target:
        uid = self.seen.cluster.uid if self.seen.cluster else ""
        return Target(kind=CLUSTER, name=self.edit.name, cluster=self.edit.name, cluster_id=uid, uid=uid)

    @cached_property
    def spec(self) -> dict[str, Json]:
        spec: dict[str, Json] = dict(self.seen.cluster.spec) if self.seen.cluster else {}
        for key, value in self.edit.settings.items():
            old = spec.get(key)
            if value is None:
                spec.pop(key, None)
            elif key in MERGED and isinstance(value, dict) and isinstance(old, dict):
                spec[key] = {**old, **value}
            else:
                spec[key] = value
        return spec

    @cached_property
    def machines(self) -> tuple[Record, ...]:
        return tuple(machine for machine in self.seen.machines if cluster_of(machine) == self.edit.name)

    def refuse(self, rule: str, reason: str, message: str, hint: str) -> Refusal:
        return Refusal(self.target, reason, message, hint, rule)


def _broken(case: _Case) -> Iterable[Refusal]:
    broken = case.seen.broken
    if broken is not None:
        yield case.refuse("4/record-broken", "RecordBroken", f"Cluster {case.edit.name} cannot be read ({broken.where}): {broken.sentence}", "Mend the file.")


def _tracked(case: _Case) -> Iterable[Refusal]:
    tool = tracked_by(case.seen.cluster) if case.seen.cluster else ""
    if tool and not case.edit.override:
        yield case.refuse("3/gitops", "RecordTracked", f"{tool} keeps cluster {case.edit.name} in step with git and would undo the change.",
                          "Change it in git, or run with override: true.")


def _schema(case: _Case) -> Iterable[Refusal]:
    record = replace(case.seen.cluster, spec=case.spec) if case.seen.cluster else Record(CLUSTER, case.edit.name, spec=case.spec)
    problems = validate(record, case.seen.cluster, Context(cluster_has_machines=bool(case.machines)))
    # What cannot be had at all is told before what would have to go with it.
    for problem in sorted(problems, key=lambda one: not one.rule.endswith("-immutable")):
        yield case.refuse(problem.rule, "Immutable" if problem.rule.endswith("-immutable") else "RecordInvalid", problem.message, "")


def _overlap(case: _Case) -> Iterable[Refusal]:
    ranges = []
    for key in ("podSubnets", "serviceSubnets"):
        for text in list_at(case.spec, "network", key):
            try:
                ranges.append((key, ipaddress.ip_network(text if isinstance(text, str) else "", strict=False)))
            except ValueError:
                continue
    for index, (key, network) in enumerate(ranges):
        for other_key, other in ranges[index + 1:]:
            if network.version == other.version and network.overlaps(other):
                yield case.refuse("3/ranges-overlap", "RecordInvalid", f"{key} {network} and {other_key} {other} overlap.", "Give ranges that do not overlap.")


def _discovery(case: _Case) -> Iterable[Refusal]:
    texts = [text for key in ("addresses", "ranges") for text in list_at(case.spec, "discovery", key) if isinstance(text, str)]
    try:
        expand(texts)
    except TalosError as error:
        yield case.refuse("6/discovery-targets", error.reason, error.message, error.hint)


def _clear(case: _Case) -> Iterable[Refusal]:
    status = case.seen.cluster.status if case.seen.cluster else {}
    for what, named, there in (("operation", case.edit.clear_operation, text_at(status, "operation", "name")),
                               ("disruption", case.edit.clear_disruption, text_at(status, "disruption", "machine"))):
        if named and there and named != there:
            yield case.refuse("13/clear-by-name", "InvalidInput", f"status.{what} of cluster {case.edit.name} names {there}, not {named}.",
                              f"Look at it, and clear it with clear_{what}: {there} when it is over.")


def _owned_values(case: _Case) -> Iterable[Refusal]:
    """The same keys that an adoption refuses in Helm values (section 15)."""
    values = dig(case.spec, "cni", "cilium", "values")
    keys = [key for key, dummy in owned_in(values)] if isinstance(values, dict) else []
    if keys:
        yield case.refuse("15/cni-owned", "InvalidInput", f"The Helm values set {', '.join(keys)}, which this product sets.", "Take it out of cilium_values.")
    secrets = sorted(secret_paths(values))
    if secrets:
        yield case.refuse("15/cni-secret", "InvalidInput", f"The Helm values hold secrets, which no record can hold: {', '.join(secrets[:12])}.",
                          "Put them into a Secret of Kubernetes, and name that in the values.")


#: One row a group of refusals.
GATES: tuple[tuple[str, Callable[[_Case], Iterable[Refusal]]], ...] = (
    ("4/record-broken", _broken),
    ("3/gitops", _tracked),
    ("3/schema", _schema),
    ("3/ranges-overlap", _overlap),
    ("6/discovery-targets", _discovery),
    ("15/cni-values", _owned_values),
    ("13/clear-by-name", _clear),
)


def _machines_left(case: _Case) -> Iterable[Refusal]:
    if case.machines:
        yield case.refuse("3/cluster-has-machines", "DeleteNotAllowed", (
            f"Cluster {case.edit.name} still has machines: {', '.join(machine.name for machine in case.machines)}."), "Remove them first.")


def _not_allowed(case: _Case) -> Iterable[Refusal]:
    annotations = case.seen.cluster.annotations if case.seen.cluster else {}
    if not case.edit.allow_delete and annotations.get(ALLOW_DELETE) != "true":
        yield case.refuse("4/allow-delete", "DeleteNotAllowed", f"Nothing says that deleting the record of cluster {case.edit.name} is meant.",
                          "Run with allow_delete: true.")


DELETION: tuple[tuple[str, Callable[[_Case], Iterable[Refusal]]], ...] = (
    ("4/record-broken", _broken),
    ("3/gitops", _tracked),
    ("3/cluster-has-machines", _machines_left),
    ("4/allow-delete", _not_allowed),
)


def decide_cluster(edit: ClusterEdit, seen: ClusterSeen) -> tuple[Plan, Record | None]:
    """The plan and the record as it would be; None where there would be none."""
    case = _Case(edit, seen)
    rows = DELETION if edit.absent else GATES
    if edit.absent and seen.cluster is None and seen.broken is None:
        return Plan(), None
    refusals = tuple(refusal for dummy, gate in rows for refusal in gate(case))
    if refusals:
        return Plan(refusals=refusals), seen.cluster
    if edit.absent and seen.cluster is not None:
        return Plan((DeleteCluster(target=case.target, why="a person wants it gone", before=seen.cluster),)), None
    return _write(case)


def _write(case: _Case) -> tuple[Plan, Record | None]:
    before = case.seen.cluster
    steps: list[Step] = []
    if case.edit.take_over and case.seen.no_lock:
        steps.append(TakeOverStore(target=case.target, why=f"a person says that no other run uses this store. {case.seen.no_lock}"))
    if before is None:
        record = Record(CLUSTER, case.edit.name, spec=case.spec)
        steps.append(CreateCluster(target=case.target, why="there is no such cluster yet", settings=case.spec, record=record))
    else:
        record = replace(before, spec=case.spec)
        changed = {key: case.spec.get(key) for key in sorted({*case.spec, *before.spec}) if case.spec.get(key) != before.spec.get(key)}
        if changed:
            steps.append(EditCluster(target=case.target, why="a person changes "
                                                             f"{'; '.join(changes(before.spec, case.spec))}", settings=changed, before=before, spec=case.spec,
                                     override=case.edit.override))
        steps.extend(_clears(case, before))
    return Plan(tuple(steps), warnings=_warnings(case)), record


def _clears(case: _Case, before: Record) -> Iterable[Step]:
    for what, named in (("operation", case.edit.clear_operation), ("disruption", case.edit.clear_disruption)):
        if named and dig(before.status, what):
            yield ClearStatus(target=case.target, why=f"a person says that {named} is over", what=what, named=named)


def _warnings(case: _Case) -> tuple[Warn, ...]:
    count = dig(case.spec, "controlPlane", "count")
    there = sorted(machine.name for machine in case.machines
                   if approval_state(machine) == "approved" and text_at(machine.spec, "role") == "controlplane")
    found = []
    if isinstance(count, int) and len(there) > count + 1:
        found.append(Warn(case.target, f"{len(there)} control planes are approved ({', '.join(there)}), more than {count} and one: none of them is sent "
                                       "anything.", "3/over-cap"))
    if case.seen.no_bundle:
        found.append(Warn(case.target, f"The secrets bundle {case.seen.no_bundle} is not in the store: without it no configuration is rendered, and nodes "
                                       "are read only with a talosconfig. Make it with talos_secrets, or put the cluster's own bundle there.",
                          "3/bundle-missing"))
    if not text_at(case.spec, "kubernetesVersion"):
        found.append(Warn(case.target, "It names no Kubernetes version: without one no configuration is rendered. Set kubernetes_version, for example "
                                       "v1.35.0.", "3/kubernetes-version"))
    return tuple(found)
