# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looks at one discovery pass, for the rows of section 6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.discovery import decide_discovery
from ansible_collections.ichor.talos.plugins.module_utils._decide.discovery_targets import not_dialled, targets_of, to_verify
from ansible_collections.ichor.talos.plugins.module_utils._decide.discovery_words import Answer, Discovery, KubernetesHost, World
from ansible_collections.ichor.talos.plugins.module_utils._model.addresses import parse_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import dial_rules
from ansible_collections.ichor.talos.plugins.module_utils._model.hardware import permanent_macs, same_machine
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Link, NodeFacts, Probe
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Broken, Event, Record, Ref

from tests.unit._decide.rows import Seen, of_plan
from tests.unit.machine_world import NOW, certificate, cluster, facts, identity, machine

SENT = {"configStoredAt": "2026-01-01T00:00:00Z"}
CONVERGED = {"appliedConfigHash": "aa"}


def answer(address: str, who: Identity | int, key: str = "one") -> Answer:
    """A node in maintenance mode."""
    read: NodeFacts = facts(address, identity(who) if isinstance(who, int) else who, key)
    return Answer(Probe(read.endpoint, "Maintenance", read.certificate), read)


def configured(address: str, name: str = "cp-1") -> Answer:
    return Answer(Probe(parse_endpoint(address), "AlreadyConfigured", certificate("x", name)))


def silent(address: str) -> Answer:
    return Answer(Probe(parse_endpoint(address), "NotListening"))


def world(*answers: Answer, machines: Sequence[Record] = (), events: Sequence[Event] = (), broken: Sequence[Broken] = ()) -> World:
    return World(tuple(answers), cluster(), tuple(machines), tuple(broken), tuple(events))


def found(
    *answers: Answer,
    machines: Sequence[Record] = (),
    events: Sequence[Event] = (),
    broken: Sequence[Broken] = (),
    request: Discovery = Discovery("prod", whole=True),
) -> Seen:
    """One pass as the decision sees it."""
    verdict = decide_discovery(request, world(*answers, machines=machines, events=events, broken=broken), NOW)
    plan = of_plan(verdict.plan)
    writes = {
        change.ref.name: tuple(sorted([*change.values, *(entry.type for entry in change.conditions), *(f"-{name}" for name in change.without)]))
        for change in verdict.changes
    }
    told = "\n".join([plan.told, *(entry.message for entry in verdict.found), *(event.message for event in verdict.events)])
    return replace(
        plan, rules=plan.rules | {entry.rule for entry in verdict.found}, writes=writes, told=told, events=tuple(event.reason for event in verdict.events)
    )


def created(*answers: Answer, machines: Sequence[Record] = ()) -> dict[str, Record]:
    """The records that a pass would create."""
    verdict = decide_discovery(Discovery("prod", whole=True), world(*answers, machines=machines), NOW)
    return {step.record.name: step.record for step in verdict.plan.steps if step.action == "CreateMachine"}  # type: ignore[attr-defined]


def probed(*registered: str, machines: Sequence[Record] = (), named: Sequence[str] = (), hosts: Sequence[KubernetesHost] | None = None) -> Seen:
    """Which addresses a pass would probe (as actions), and why others not."""
    told: Observed[tuple[KubernetesHost, ...]] = Present(tuple(hosts)) if hosts is not None else Absent()
    request = Discovery("prod", tuple(parse_endpoint(text) for text in named), whole=not named)
    targets = targets_of(request, [parse_endpoint(text) for text in registered], tuple(machines), told, dial_rules(cluster().spec))
    warnings = not_dialled(request, targets, ())
    return Seen(
        frozenset(skip.rule for skip in targets.skipped) | {warning.rule for warning in warnings},
        actions=tuple(endpoint.host for endpoint in targets.probe),
        told="\n".join([*(skip.message for skip in targets.skipped), *(warning.message for warning in warnings)]),
    )


def verified(*answers: Answer, machines: Sequence[Record] = ()) -> Seen:
    """Which own addresses are asked before another one is recorded (as actions)."""
    wanted = to_verify(Discovery("prod"), world(*answers, machines=machines), dial_rules(cluster().spec))
    return Seen(actions=tuple(endpoint.host for endpoint in wanted))


def weak_of(seen: dict[str, Record]) -> Seen:
    """What the one weak record that was created looks like."""
    (record,) = seen.values()
    conditions = record.status["conditions"]
    told = " ".join(entry["message"] for entry in conditions if entry["type"] == "WeakIdentity")
    rules = {"weak"} if any(entry["type"] == "WeakIdentity" and entry["status"] == "True" for entry in conditions) else set()
    if record.name.startswith("weak-") and "identity" not in record.spec and record.spec["approvalState"] == "pending":
        rules.add("entry")
    return Seen(frozenset(rules), told=told)


def names_of(seen: dict[str, Record]) -> Seen:
    return Seen(actions=tuple(sorted(seen)))


def told_before(address: str, message: str, ago: float) -> Event:
    return Event(Ref("TalosCluster", "prod"), "Warning", "AlreadyConfigured", message, moment(NOW - ago))


def first_words(*answers: Answer) -> str:
    return decide_discovery(Discovery("prod"), world(*answers), NOW).events[0].message


def links_of(*links: Link) -> Seen:
    return Seen(actions=permanent_macs(links))


def equal(one: Identity, other: Identity) -> Seen:
    return Seen(actions=("equal",) if same_machine(one, other) else ())


PLACEHOLDER = "03000200-0400-0500-0006-000700080009"
FULL = tuple(machine(number, name=f"prod-full-{number}", address=f"10.1.0.{number}") for number in range(1, 101))
