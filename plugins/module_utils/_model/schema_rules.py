# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules over more than one field, or over a field before and after: one table, as data (design sections 3, 4, 7).

The directory store checks records by it; CRDs get their CEL from it, so a rule says no more than CEL can say. What
needs other records comes in as a `Context`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from .approval import approval_state, status_missing, was_sent
from .record_uid import canonical_identity
from .records import BACKUP, CLUSTER, MACHINE, RECLAIM, Json, Record, dig
from .schema_types import Problem, dotted

Steps = tuple[str, ...]


@dataclass(frozen=True)
class Context:
    """What a rule has to know of other records."""

    cluster_has_machines: bool = False


@dataclass(frozen=True)
class AtMostOne:
    """Of these fields at most one may be set; with `exactly`, one has to be (once the block that holds them is there)."""

    id: str
    kinds: tuple[str, ...]
    inside: Steps
    names: tuple[str, ...]
    message: str
    exactly: bool = False


@dataclass(frozen=True)
class Requires:
    """Where `field` has one of `values` (any value where empty), `needs` have to be set. `on_write` only: a hand-written
    record that breaks it is read, and counts for less."""

    id: str
    kinds: tuple[str, ...]
    field: Steps
    values: tuple[Json, ...]
    needs: tuple[Steps, ...]
    message: str
    on_write: bool = False


@dataclass(frozen=True)
class OnlyWith:
    """`field` may be set only where `other` has one of `values` (any value where empty)."""

    id: str
    kinds: tuple[str, ...]
    field: Steps
    other: Steps
    values: tuple[Json, ...]
    message: str


@dataclass(frozen=True)
class Excludes:
    """Where `field` is `value`, none of `others` may be set."""

    id: str
    kinds: tuple[str, ...]
    field: Steps
    value: Json
    others: tuple[Steps, ...]
    message: str


@dataclass(frozen=True)
class Immutable:
    """`field` keeps its value once `after` holds for the record before: `set`, `approved`, `sent`, `has-machines` or `created`.

    `allowed` lists changes that are permitted all the same.
    """

    id: str
    kinds: tuple[str, ...]
    field: Steps
    after: str
    message: str
    allowed: tuple[tuple[Json, Json], ...] = ()


Rule = Union[AtMostOne, Requires, OnlyWith, Excludes, Immutable]

_PRIMARY = ("spec", "network", "primary")

RULES: tuple[Rule, ...] = (
    AtMostOne("3/disk-or-selector", (CLUSTER, MACHINE), ("spec", "install"), ("disk", "diskSelector"),
              "names a disk and a selector; one of them has to go"),
    AtMostOne("3/interface-or-mac", (MACHINE,), _PRIMARY, ("interface", "mac"), "names a link by interface and by MAC; one of them has to go"),
    Excludes("3/dhcp-or-static", (MACHINE,), (*_PRIMARY, "dhcp"), True,
             ((*_PRIMARY, "addresses"), (*_PRIMARY, "gateway")), "is either by DHCP or static, not both"),
    OnlyWith("3/gateway-needs-addresses", (MACHINE,), (*_PRIMARY, "gateway"), (*_PRIMARY, "addresses"), (),
             "needs spec.network.primary.addresses beside it"),
    OnlyWith("3/cilium-values-need-managed", (CLUSTER,), ("spec", "cni", "cilium"), ("spec", "cni", "preset"), ("managed",),
             "is only for the preset managed"),
    AtMostOne("3/backup-destination", (BACKUP,), ("spec", "destination"), ("file", "s3"), "has to be either file or s3", exactly=True),
    Requires("7/approval-together", (MACHINE,), ("spec", "approvalState"), ("approved",),
             (("spec", "approvedBy"), ("spec", "approvedAt")), "has to be set together with approvalState: approved", on_write=True),
    Requires("7/approved-needs-role", (MACHINE,), ("spec", "approvalState"), ("approved",), (("spec", "role"),),
             "has to be set on an approved machine", on_write=True),
    Immutable("3/cluster-ref-immutable", (MACHINE,), ("spec", "clusterRef"), "approved", "cannot be changed once the machine is approved"),
    Immutable("7/role-immutable", (MACHINE,), ("spec", "role"), "sent", "cannot be changed once a configuration was sent"),
    Immutable("7/identity-immutable", (MACHINE,), ("spec", "identity"), "sent", "cannot be changed once a configuration was sent"),
    Immutable("7/approval-final", (MACHINE,), ("spec", "approvalState"), "sent",
              "cannot be taken back once a configuration was sent; remove the machine instead"),
    Immutable("3/secrets-ref-immutable", (CLUSTER,), ("spec", "secretsRef"), "has-machines", "cannot be changed once the cluster has a machine"),
    Immutable("3/cni-preset-immutable", (CLUSTER,), ("spec", "cni", "preset"), "set",
              "cannot be changed once it is set, except once from none to managed", allowed=(("none", "managed"),)),
    Immutable("3/reclaim-immutable", (RECLAIM,), ("spec",), "created", "cannot be changed; an order to wipe is carried out as it was given"),
)


def broken_rules(record: Record, before: Record | None, context: Context, *, writing: bool,
                 rules: tuple[Rule, ...] = RULES) -> Iterator[Problem]:
    """The problems of all rules of the record's kind."""
    data: dict[str, Json] = {"spec": dict(record.spec)}
    for rule in rules:
        if record.kind not in rule.kinds:
            continue
        if isinstance(rule, AtMostOne):
            yield from _at_most_one(rule, data)
        elif isinstance(rule, Requires):
            yield from _requires(rule, data) if writing or not rule.on_write else ()
        elif isinstance(rule, OnlyWith):
            if dig(data, *rule.field) is not None and not _has(data, rule.other, rule.values):
                yield Problem(rule.field, f"{dotted(rule.field)} {rule.message}.", rule.id)
        elif isinstance(rule, Excludes):
            for other in rule.others:
                if dig(data, *rule.field) == rule.value and dig(data, *other) is not None:
                    yield Problem(other, f"{dotted(other[:-1])} {rule.message}.", rule.id)
        elif before is not None:
            yield from _immutable(rule, data, before, context)


def _has(data: dict[str, Json], path: Steps, values: tuple[Json, ...]) -> bool:
    found = dig(data, *path)
    return found in values if values else found is not None


def _at_most_one(rule: AtMostOne, data: dict[str, Json]) -> Iterator[Problem]:
    block = dig(data, *rule.inside)
    if isinstance(block, dict):
        there = [name for name in rule.names if name in block]
        if len(there) > 1 or rule.exactly and not there:
            yield Problem(rule.inside, f"{dotted(rule.inside)} {rule.message}.", rule.id)


def _requires(rule: Requires, data: dict[str, Json]) -> Iterator[Problem]:
    if _has(data, rule.field, rule.values):
        for need in rule.needs:
            if dig(data, *need) in (None, ""):
                yield Problem(need, f"{dotted(need)} {rule.message}.", rule.id)


def _immutable(rule: Immutable, data: dict[str, Json], before: Record, context: Context) -> Iterator[Problem]:
    old = dig({"spec": dict(before.spec)}, *rule.field)
    new = dig(data, *rule.field)
    if _same(rule.field, old, new) or (old, new) in rule.allowed:
        return
    holds = {"set": old is not None, "approved": approval_state(before) == "approved", "sent": was_sent(before) or status_missing(before),
             "has-machines": context.cluster_has_machines, "created": True}[rule.after]
    if holds:
        yield Problem(rule.field, f"{dotted(rule.field)} {rule.message}.", rule.id)


def _same(path: Steps, old: Json, new: Json) -> bool:
    if path == ("spec", "identity"):
        return canonical_identity(old) == canonical_identity(new)
    return old == new
