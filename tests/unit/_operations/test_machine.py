# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A person's edits, trust and deletion, from observation to the store (design sections 3 to 5)."""

from __future__ import annotations

import asyncio

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.machine_edit_words import Edit
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdMember, EtcdStatus
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import HOLD_APPLY, MACHINE, TRUST_FINGERPRINT, Record, Ref
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine import Request, run
from tests.unit.machine_world import Clock, Gate, Node, Nodes, Session, Store, cluster, credentials, facts, fingerprint, identity, machine, ports

SENT = {"configStoredAt": "2026-01-01T00:00:00Z", "storedConfigHash": "aa"}
CONVERGED = {"appliedConfigHash": "aa"}


def edit(given: Ports, *names: str, select: str = "", **said: object) -> Outcome:
    names = names or (() if select else ("prod-1",))
    return asyncio.run(run(Request(names, select, "", Edit("", **said)), given, Gate(given.check)))  # type: ignore[arg-type]


def node(number: int = 1, key: str = "one", mode: str = "maintenance", **more: object) -> Node:
    return Node(facts(f"10.0.0.{number}", identity(number), key), mode, **more)  # type: ignore[arg-type]


def read(store: Store, name: str = "prod-1") -> Record:
    record = store.get(MACHINE, name)
    assert record is not None
    return record


def test_edits_are_written_once() -> None:
    store = Store(cluster(), machine(1))
    outcome = edit(ports(None, store), endpoint="10.0.0.30", labels={"rack": "b"}, hold=True)
    record = read(store)
    assert (record.spec["endpoint"], record.spec["labels"], record.annotations[HOLD_APPLY]) == ("10.0.0.30", {"rack": "b"}, "true")
    assert len(outcome.executed) == 1 and outcome.differences[0].header == "TalosMachine/prod-1"
    store.writes.clear()
    assert not edit(ports(None, store), endpoint="10.0.0.30", labels={"rack": "b"}, hold=True).plan.changed and store.writes == []


def test_a_hold_is_taken_away() -> None:
    store = Store(cluster(), machine(1, annotations={HOLD_APPLY: "true", "own": "x"}))
    edit(ports(None, store), hold=False)
    assert dict(read(store).annotations) == {"own": "x"}


def test_install_that_comes_late_records_the_disk_that_the_node_shows() -> None:
    store = Store(cluster(), machine(1, "approved"))
    edit(ports(Nodes(node()), store), install={"diskSelector": {"type": "nvme"}})
    assert read(store).spec["approvedDisk"] == {"wwid": "eui.01", "serial": "D1", "model": "Fast 500", "size": 500_000_000_000}


def test_trust_of_a_rotated_certificate_is_settled_first() -> None:
    store, clock = Store(cluster(), machine(1, "approved")), Clock()
    edit(ports(Nodes(node(key="two")), store, clock=clock), trust=True)
    record = read(store)
    assert record.spec["acceptedFingerprint"] == fingerprint("two") and record.status["maintenanceFingerprint"] == fingerprint("two")
    assert clock.slept == [5.0] and [event.reason for event in store.told] == ["MaintenanceIdentityRefreshed"]
    store.writes.clear()
    assert not edit(ports(Nodes(node(key="two")), store), trust=True).plan.changed and store.writes == []


def test_a_certificate_that_changes_between_the_readings_is_not_trusted() -> None:
    store = Store(cluster(), machine(1, "approved"))
    outcome = edit(ports(Nodes(node(keys=["two", "three"])), store), trust=True)
    assert outcome.refused and outcome.reason == "MaintenanceIdentityChanged" and store.writes == []


def test_one_action_trusts_many_and_lists_the_others() -> None:
    store = Store(cluster(), machine(1, "approved"), machine(2, "approved"), machine(3, "approved"), machine(4, "approved", status=CONVERGED), machine(5))
    nodes = Nodes(node(1, "new"), Node(facts("10.0.0.2", identity(9), "new")))
    outcome = edit(ports(nodes, store), select="[?spec.approvalState=='approved'].metadata.name", trust=True)
    assert read(store, "prod-1").spec["acceptedFingerprint"] == fingerprint("new")
    assert outcome.blocked == ("prod-2", "prod-4") and outcome.unreachable == ("prod-3",) and not outcome.refused
    assert {row.name: row.reason for row in outcome.machines}["prod-2"] == "IdentityMismatch"


def test_a_silent_machine_gets_the_annotation_that_a_person_names() -> None:
    store = Store(cluster(), machine(1, "approved"))
    edit(ports(None, store), trust=True, fingerprint=fingerprint("two"))
    assert read(store).annotations[TRUST_FINGERPRINT] == fingerprint("two")


def test_trust_rearms_one_send_of_a_machine_that_stayed_in_maintenance() -> None:
    store = Store(cluster(), machine(1, "approved", status=SENT))
    outcome = edit(ports(Nodes(node(key="two")), store), trust=True)
    status = read(store).status
    assert "configStoredAt" not in status and "storedConfigHash" not in status and status["maintenanceFingerprint"] == fingerprint("two")
    assert "one more send" in outcome.plan.steps[0].why
    assert not edit(ports(Nodes(node(key="two")), store), trust=True).plan.changed


def test_a_weak_entry_is_resolved_and_trusted_in_one_go() -> None:
    weak = identity(1, uuid="")
    store = Store(cluster(), machine(1, "approved", name="weak-1", identity={}))
    nodes = Nodes(Node(facts("10.0.0.1", weak, "two")))
    outcome = edit(ports(nodes, store), "weak-1", identity={"serial": "SN-0001-A"}, trust=True, fingerprint=fingerprint("two"))
    record = read(store, "weak-1")
    assert [step.action for step in outcome.plan.steps] == ["EditMachine", "TrustMachine"]
    assert (record.spec["identity"], record.spec["acceptedFingerprint"]) == ({"serial": "SN-0001-A"}, fingerprint("two"))


def test_a_record_is_deleted_and_the_node_is_left_alone() -> None:
    store, nodes = Store(cluster(), machine(1)), Nodes(node())
    outcome = edit(ports(nodes, store), absent=True, allow_delete=True)
    assert store.get(MACHINE, "prod-1") is None and nodes.calls == [] and outcome.extra["deleted"] == ["prod-1"]
    assert not edit(ports(nodes, store), absent=True, allow_delete=True).plan.changed


class EtcdSession(Session):
    async def etcd_status(self) -> EtcdStatus:
        return EtcdStatus("1", "1")


@pytest.mark.parametrize(("answering", "reason"), [((2, 3), ""), ((2,), "QuorumAtRisk"), ((), "QuorumUnknown")])
def test_a_control_plane_of_a_bootstrapped_cluster_keeps_its_record_unless_quorum_is_safe(
        answering: tuple[int, ...], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.unit.machine_world.Session", EtcdSession)
    members = tuple(EtcdMember(f"{number:016x}", f"cp-{number}") for number in (1, 2, 3))
    store = Store(cluster(), *(machine(number, "approved", role="controlplane", status=CONVERGED) for number in (1, 2, 3)))
    nodes = Nodes(*(node(number, mode="configured", members=members) for number in answering))
    outcome = edit(ports(nodes, store, credentials=credentials), absent=True, allow_delete=True)
    assert (outcome.reason, store.get(MACHINE, "prod-1") is None) == (reason, not reason)
    assert "10.0.0.1:50000" not in nodes.asked()


def test_check_mode_writes_nothing_and_shows_what_would_be() -> None:
    store, clock = Store(cluster(), machine(1, "approved"), machine(2)), Clock()
    outcome = edit(ports(Nodes(node(key="two")), store, check=True, clock=clock), trust=True)
    assert store.writes == [] and clock.slept == [] and outcome.waiting_for
    assert outcome.would_be[0].spec["acceptedFingerprint"] == fingerprint("two")
    assert edit(ports(None, store, check=True), "prod-2", absent=True, allow_delete=True).would_delete == (Ref(MACHINE, "prod-2"),)


@pytest.mark.parametrize(("names", "said"), [((), {"fingerprint": "x"}), (("prod-1", "prod-2"), {"endpoint": "10.0.0.9"}),
                                             (("prod-1", "prod-2"), {"trust": True, "fingerprint": fingerprint("x")})])
def test_what_does_not_go_together_is_refused(names: tuple[str, ...], said: dict[str, object]) -> None:
    with pytest.raises(TalosError) as caught:
        edit(ports(None, Store(cluster(), machine(1), machine(2))), *names, **said)
    assert caught.value.reason == "InvalidInput"
