# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules over several fields as CEL, for the API server (design section 4); `schema_rules` is their one source.

`self` is the whole record, and `oldSelf` the one that it replaces. A rule that needs another record (a cluster's machines)
has no expression: the product alone checks it.
"""

from __future__ import annotations

from .records import Json, JsonMap
from .schema_rules import RULES, AtMostOne, Excludes, Immutable, OnlyWith, Requires, Rule, Steps
from .schema_types import dotted

_SENT = ("sending", "configStoredAt", "storedConfigHash", "appliedConfigHash")


def validations(kind: str) -> tuple[JsonMap, ...]:
    """`x-kubernetes-validations` of the root of a kind's schema; each message begins with the field and ends with the rule's id."""
    found: list[JsonMap] = []
    for rule in RULES:
        expression = expression_of(rule) if kind in rule.kinds else ""
        if expression:
            found.append({"rule": expression, "message": f"{dotted(_subject(rule))} {rule.message} ({rule.id})"})
    return tuple(found)


def expression_of(rule: Rule) -> str:
    """The rule in CEL, or '' where an API server cannot know what it needs."""
    if isinstance(rule, AtMostOne):
        return _at_most_one(rule)
    if isinstance(rule, Requires):
        needs = " && ".join(_filled(need) for need in rule.needs)
        return f"!({_has_value(rule.field, rule.values)}) || ({needs})"
    if isinstance(rule, OnlyWith):
        return f"!({_has(rule.field)}) || ({_has_value(rule.other, rule.values)})"
    if isinstance(rule, Excludes):
        others = " || ".join(f"({_has(other)})" for other in rule.others)
        return f"!({_has_value(rule.field, (rule.value,))}) || !({others})"
    return _immutable(rule)


def _subject(rule: Rule) -> Steps:
    if isinstance(rule, AtMostOne):
        return rule.inside
    if isinstance(rule, Requires):
        return rule.needs[0]
    return rule.field


def _at_most_one(rule: AtMostOne) -> str:
    there = [f"has(self.{'.'.join((*rule.inside, name))})" for name in rule.names]
    counted = f"[{', '.join(there)}].filter(there, there).size()"
    return f"!({_has(rule.inside)}) || {counted} {'==' if rule.exactly else '<='} 1"


def _immutable(rule: Immutable) -> str:
    holds = {
        "set": _has(rule.field, "oldSelf"),
        "created": "true",
        "approved": _approved("oldSelf"),
        "sent": "(has(oldSelf.status) && (" + " || ".join(f"has(oldSelf.status.{name})" for name in _SENT) + f")) || ({_approved('oldSelf')} && "
                "(!has(oldSelf.status) || !has(oldSelf.status.recordUID)))",
    }.get(rule.after)
    if holds is None:
        return ""
    new, old = ".".join(("self", *rule.field)), ".".join(("oldSelf", *rule.field))
    both = f"({_has(rule.field)}) && ({_has(rule.field, 'oldSelf')})"
    neither = f"!({_has(rule.field)}) && !({_has(rule.field, 'oldSelf')})"
    changes = "".join(f" || {both} && {old} == {_literal(before)} && {new} == {_literal(after)}" for before, after in rule.allowed)
    return f"!({holds}) || {neither} || {both} && {new} == {old}{changes}"


def _approved(root: str) -> str:
    spec = f"{root}.spec"
    return (f"(has({spec}.approvalState) && {spec}.approvalState == 'approved' && has({spec}.approvedBy) && {spec}.approvedBy != '' "
            f"&& has({spec}.approvedAt))")


def _has(path: Steps, root: str = "self") -> str:
    """Whether a field is there, with everything above it."""
    return " && ".join(f"has({'.'.join((root, *path[:depth]))})" for depth in range(1, len(path) + 1))


def _has_value(path: Steps, values: tuple[Json, ...]) -> str:
    if not values:
        return _has(path)
    field = ".".join(("self", *path))
    return f"{_has(path)} && {field} in [{', '.join(map(_literal, values))}]"


def _filled(path: Steps) -> str:
    return f"{_has(path)} && {'.'.join(('self', *path))} != ''"


def _literal(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, str) else str(value)
