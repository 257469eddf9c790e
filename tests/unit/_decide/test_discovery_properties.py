# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds for discovery whatever answers (design sections 2 and 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.discovery import decide_discovery
from ansible_collections.ichor.talos.plugins.module_utils._decide.discovery_table import state_of
from ansible_collections.ichor.talos.plugins.module_utils._decide.discovery_verdict import CreateMachine, RefreshPin, Verdict
from ansible_collections.ichor.talos.plugins.module_utils._decide.discovery_words import Answer, Discovery, World
from ansible_collections.ichor.talos.plugins.module_utils._decide.same_machine import recorded_identity
from ansible_collections.ichor.talos.plugins.module_utils._model.hardware import meaningful, same_machine
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity, swapped_uuid
from ansible_collections.ichor.talos.plugins.module_utils._model.machine import cluster_of, dial_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Probe
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Record
from ansible_collections.ichor.talos.plugins.module_utils._model.schema import validate, validate_status
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit._decide.looks_discovery import configured, silent
from tests.unit.machine_world import NOW, certificate, cluster, facts, identity, mac_of, machine, uuid_of

ADDRESSES = [f"10.0.0.{number}" for number in range(1, 8)]

identities = st.one_of(
    st.integers(1, 4).map(identity),
    st.builds(lambda number, other: identity(number, uuid=uuid_of(other)), st.integers(1, 4), st.integers(1, 4)),
    st.builds(lambda number: identity(number, uuid=swapped_uuid(uuid_of(1))), st.integers(1, 4)),
    st.sampled_from(
        [
            Identity(),
            identity(1, uuid=""),
            identity(2, uuid="00000000-0000-0000-0000-000000000000"),
            identity(1, serial="None"),
            identity(1, macs=()),
            identity(1, macs=(mac_of(1), mac_of(9))),
        ]
    ),
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[Answer, ...]:
    """At most one answer an address."""
    found = []
    for address in draw(st.lists(st.sampled_from(ADDRESSES), unique=True)):
        kind = draw(st.sampled_from(["maintenance", "maintenance", "maintenance", "silent", "configured"]))
        if kind == "silent":
            found.append(silent(address))
        elif kind == "configured":
            found.append(configured(address))
        else:
            read = facts(address, draw(identities), draw(st.sampled_from(["one", "two"])))
            found.append(Answer(Probe(read.endpoint, "Maintenance", certificate("probe")), read))
    return tuple(found)


@st.composite
def machines(draw: st.DrawFn) -> tuple[Record, ...]:
    """Records in every state, of two clusters, some seen at another address."""
    found = []
    for number in draw(st.lists(st.integers(1, 5), unique=True)):
        state = draw(st.sampled_from(["pending", "rejected", "approved"]))
        status: dict[str, object] = {}
        if draw(st.booleans()):
            status = {"observedEndpoint": draw(st.sampled_from(ADDRESSES)), "observedEndpointFor": f"10.0.0.{number}"}
        if state == "approved" and draw(st.booleans()):
            status["configStoredAt"] = "2026-01-01T00:00:00Z"
        found.append(
            machine(
                number,
                state,
                who=draw(identities),
                pin=draw(st.sampled_from(["one", "two", ""])),
                status=status,  # type: ignore[arg-type]
                clusterRef=draw(st.sampled_from(["prod", "prod", "dev"])),
            )
        )
    return tuple(found)


def decide(told: Sequence[Answer], records: Sequence[Record], limit: int = 3) -> Verdict:
    return decide_discovery(Discovery("prod", whole=True, pending_limit=limit), World(tuple(told), cluster(), tuple(records)), NOW)


@settings(max_examples=60, deadline=None)
@given(answers(), machines(), st.randoms(use_true_random=False))
def test_the_decision_does_not_depend_on_the_order_of_answers_or_records(told: tuple[Answer, ...], records: tuple[Record, ...], random: object) -> None:
    shuffled, mixed = list(told), list(records)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert decide(shuffled, mixed) == decide(told, records)


@settings(max_examples=60, deadline=None)
@given(answers(), machines())
def test_no_spec_of_a_record_that_exists_is_changed_and_no_name_is_taken_twice(told: tuple[Answer, ...], records: tuple[Record, ...]) -> None:
    verdict = decide(told, records)
    names = [record.name for record in records]
    for step in verdict.plan.steps:
        assert isinstance(step, (CreateMachine, RefreshPin))
        if isinstance(step, CreateMachine):
            names.append(step.record.name)
            assert validate(step.record) == () and validate_status(step.record) == ()
            assert step.record.spec["approvalState"] == "pending"
    assert len(names) == len(set(names))


@settings(max_examples=60, deadline=None)
@given(answers(), machines())
def test_only_machines_of_the_cluster_are_touched_and_never_one_that_was_sent_a_configuration(told: tuple[Answer, ...], records: tuple[Record, ...]) -> None:
    verdict = decide(told, records)
    touched = {change.ref.name for change in verdict.changes} | {step.target.name for step in verdict.plan.steps if isinstance(step, RefreshPin)}
    for record in records:
        if record.name in touched:
            assert cluster_of(record) == "prod" and state_of(record) in ("pending", "rejected", "approved-pinned")
    for step in verdict.plan.steps:
        if isinstance(step, RefreshPin):
            assert state_of(next(record for record in records if record.name == step.target.name)) == "pending"
            assert step.change is not None and step.change.ref.kind == MACHINE and step.fingerprint != step.previous


@settings(max_examples=60, deadline=None)
@given(answers(), machines())
def test_an_address_is_recorded_only_when_the_own_one_did_not_answer_as_that_machine(told: tuple[Answer, ...], records: tuple[Record, ...]) -> None:
    verdict = decide(told, records)
    changes = [*verdict.changes, *(step.change for step in verdict.plan.steps if isinstance(step, RefreshPin) and step.change is not None)]
    for change in changes:
        if "observedEndpoint" in change.values:
            record = next(entry for entry in records if entry.name == change.ref.name)
            own = dial_endpoint(record)
            assert not any(
                answer.facts is not None and answer.probe.endpoint == own and same_machine(recorded_identity(record.spec), answer.facts.identity)
                for answer in told
            )
            assert change.values["observedEndpointFor"] == record.spec["endpoint"]


@settings(max_examples=60, deadline=None)
@given(answers(), machines())
def test_a_twin_is_neither_pinned_nor_created(told: tuple[Answer, ...], records: tuple[Record, ...]) -> None:
    keys: dict[Identity, set[str]] = {}
    for answer in told:
        if answer.facts is not None and meaningful(answer.facts.identity).uuid:
            keys.setdefault(meaningful(answer.facts.identity), set()).add(answer.facts.certificate.fingerprint)
    twins = {str(answer.probe.endpoint) for answer in told if answer.facts is not None and len(keys.get(meaningful(answer.facts.identity), ())) > 1}
    assert not twins & {step.target.address for step in decide(told, records).plan.steps}


@settings(max_examples=60, deadline=None)
@given(answers(), machines(), st.integers(0, 4))
def test_the_store_never_fills_beyond_the_limit(told: tuple[Answer, ...], records: tuple[Record, ...], limit: int) -> None:
    pending = sum(1 for record in records if cluster_of(record) == "prod" and state_of(record) == "pending")
    created = sum(1 for step in decide(told, records, limit).plan.steps if isinstance(step, CreateMachine))
    assert created <= max(0, limit - pending)


@settings(max_examples=60, deadline=None)
@given(answers(), machines())
def test_what_was_written_is_not_written_again(told: tuple[Answer, ...], records: tuple[Record, ...]) -> None:
    """Run again in an equal world: nothing is called for but what was found at an address that a machine has just moved away from.
    A pass sees the records as they were when it began, so such an address is free from the next pass on, and then all is quiet."""
    verdict = decide(told, records, 100)
    after, freed = written(verdict, records)
    again = decide(told, after, 100)
    assert all(isinstance(step, CreateMachine) and step.target.address in freed for step in again.plan.steps)
    for unused in range(len(records) + 1):
        after, freed = written(again, after)
        again = decide(told, after, 100)
    assert again.plan.steps == ()


def written(verdict: Verdict, records: Sequence[Record]) -> tuple[tuple[Record, ...], set[str]]:
    """The records after a pass was carried out, and the addresses that machines moved away from in it."""
    after = {record.name: record for record in records}
    changes = list(verdict.changes)
    for step in verdict.plan.steps:
        if isinstance(step, CreateMachine):
            after[step.record.name] = replace(step.record, uid=step.record.name)
        elif isinstance(step, RefreshPin) and step.change is not None:
            changes.append(step.change)
    freed = set()
    for change in changes:
        if "observedEndpoint" in change.values:
            freed.add(str(dial_endpoint(after[change.ref.name])))
        after[change.ref.name] = replace(after[change.ref.name],
                                         status=dict(change.applied(dict(after[change.ref.name].status), NOW)))  # type: ignore[arg-type]
    return tuple(after.values()), freed
