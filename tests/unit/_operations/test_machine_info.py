# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads by people (design section 9), and that every operation dials the address to dial (section 3)."""

from __future__ import annotations

import asyncio

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.approval_words import Wanted
from ansible_collections.ichor.talos.plugins.module_utils._decide.machine_edit_words import Edit
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Broken, Record
from ansible_collections.ichor.talos.plugins.module_utils._operations import discover, machine_approval, machine_info
from ansible_collections.ichor.talos.plugins.module_utils._operations import machine as machine_operation
from tests.unit.machine_world import Gate, Node, Nodes, Store, cluster, credentials, facts, identity, machine, ports

SENT = {"configStoredAt": "2026-01-01T00:00:00Z", "stage": "booting"}
CONVERGED = {"appliedConfigHash": "aa", "stage": "running"}


def info(given: Ports, **options: object) -> Outcome:
    return asyncio.run(machine_info.run(machine_info.Request(**options), given, Gate(given.check)))  # type: ignore[arg-type]


def one(record: Record, node: Node | None = None, *, with_credentials: bool = True, in_cluster: Record | None = None) -> tuple[dict[str, object], Nodes]:
    nodes = Nodes(*(() if node is None else (node,)))
    more = {"credentials": credentials} if with_credentials else {}
    outcome = info(ports(nodes, Store(in_cluster or cluster(), record), **more))
    (shown,) = outcome.extra["records"]
    return shown, nodes


def node(mode: str = "maintenance", **more: object) -> Node:
    return Node(facts("10.0.0.1", identity(1)), mode, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", ["pending", "rejected"])
def test_a_machine_that_was_not_approved_is_not_asked(state: str) -> None:
    shown, nodes = one(machine(1, state), node())
    assert nodes.calls == [] and shown["node"] is None


def test_two_records_of_one_machine_are_told() -> None:
    twins = (machine(1, "approved"), machine(1, "rejected", name="prod-dup"), machine(1, name="prod-third"), machine(2))
    outcome = info(ports(Nodes(), Store(cluster(), *twins), credentials=credentials), read_nodes=False)
    shown = {entry["metadata"]["name"]: entry for entry in outcome.extra["records"]}
    assert {name: entry["same_machine_as"] for name, entry in shown.items()} == {
        "prod-1": "prod-dup", "prod-dup": "prod-1", "prod-third": "prod-1", "prod-2": ""}
    assert "Record prod-dup" in shown["prod-1"]["doing"]["what"] and "state: absent" in shown["prod-third"]["doing"]["advice"]


def test_an_approved_machine_that_never_converged_falls_back_to_maintenance_and_says_so() -> None:
    shown, nodes = one(machine(1, "approved"), node())
    assert [call for call, dummy in nodes.calls] == ["authenticated", "maintenance"]
    assert shown["node"]["maintenance_mode"] is True and shown["node"]["stage"] == "maintenance"
    assert shown["doing"]["what"] == "It is approved and waits in maintenance mode."


def test_a_converged_machine_never_does() -> None:
    shown, nodes = one(machine(1, "approved", status=CONVERGED), node())
    assert [call for call, dummy in nodes.calls] == ["authenticated"]
    assert shown["node"]["answers"] is False and shown["node"]["reason"] == "UnknownAuthority"


def test_a_running_machine_is_read_with_authentication() -> None:
    shown, nodes = one(machine(1, "approved", status=CONVERGED), node("configured"))
    assert shown["node"]["stage"] == "running" and shown["node"]["maintenance_mode"] is False
    assert shown["doing"]["what"] == "It runs."


def test_without_credentials_the_converged_machine_is_not_asked() -> None:
    shown, nodes = one(machine(1, "approved", status=CONVERGED), node(), with_credentials=False)
    assert nodes.calls == [] and shown["node"]["reason"] == "SecretsUnavailable"


@pytest.mark.parametrize(
    ("record", "given", "what", "advice"),
    [
        (machine(1), None, "It is pending", "talos_machine_approval"),
        (
            machine(1, name="weak-1", status={"conditions": [{"type": "WeakIdentity", "status": "True", "reason": "WeakIdentity", "message": "m"}]}),
            None,
            "It is pending, with an identity",
            "accept_weak_identity",
        ),
        (machine(1, "rejected"), None, "It is rejected", "talos_machine_approval"),
        (machine(1, "approved", pin=""), None, "its status was lost", "trust: true"),
        (machine(1, "approved"), Node(facts("10.0.0.1", identity(5))), "Another machine answers", "spec.endpoint"),
        (machine(1, "approved", annotations={"ichor.maesh.dev/hold-apply": "true"}), None, "It is held", "hold: false"),
        (machine(1, "approved"), None, "was sent nothing yet", "maintenance mode"),
        (
            machine(1, "approved", status={"conditions": [{"type": "Provisioned", "status": "False", "reason": "InstallDiskUnknown", "message": "No disk."}]}),
            None,
            "No disk.",
            "talos_maintenance_apply",
        ),
        (machine(1, "approved", status=SENT), None, "on its way (booting)", "talos_stage"),
        (machine(1, "approved", status=SENT), node(), "still in maintenance mode", "trust: true"),
        (machine(1, "approved", role="controlplane", status=SENT), node("configured", stage=StageReading("booting")), "waits for etcd", "talos_bootstrap"),
        (machine(1, "approved", status=CONVERGED), None, "does not answer now", "spec.endpoint"),
        (
            machine(
                1, "approved", status={**CONVERGED, "conditions": [{"type": "Ready", "status": "False", "reason": "Drifted", "message": "Two paths differ."}]}
            ),
            node("configured"),
            "Two paths differ.",
            "message",
        ),
        (machine(1, "approved", status=CONVERGED), node("configured", stage=StageReading("rebooting")), "in stage rebooting", "talos_stage"),
    ],
)
def test_what_it_is_doing_and_what_to_do_now(record: Record, given: Node | None, what: str, advice: str) -> None:
    shown, dummy = one(record, given)
    assert what in shown["doing"]["what"] and advice in shown["doing"]["advice"]


def test_machines_are_chosen_by_name_cluster_and_expression() -> None:
    store = Store(cluster(), machine(1), machine(2, "rejected"), machine(3, clusterRef="dev"))
    assert [row.name for row in info(ports(None, store)).machines] == ["prod-1", "prod-2", "prod-3"]
    assert [row.name for row in info(ports(None, store), cluster="prod").machines] == ["prod-1", "prod-2"]
    assert [row.name for row in info(ports(None, store), select="[?spec.approvalState=='rejected'].metadata.name").machines] == ["prod-2"]
    assert [row.name for row in info(ports(None, store), machines=("prod-3",)).machines] == ["prod-3"]


def test_an_unknown_name_and_a_broken_record_are_told_apart() -> None:
    store = Store(cluster(), broken=[Broken("TalosMachine", "bad", "machines/bad.yaml", 4, "two colons")])
    with pytest.raises(TalosError) as caught:
        info(ports(None, store), machines=("nobody",))
    assert caught.value.reason == "RecordNotFound"
    with pytest.raises(TalosError) as caught:
        info(ports(None, store), machines=("bad",))
    assert caught.value.reason == "RecordBroken" and "line 4" in caught.value.message
    assert [entry["name"] for entry in info(ports(None, store)).extra["broken"]] == ["bad"]


def test_a_cluster_that_is_none_is_no_empty_one() -> None:
    store = Store(cluster(), machine(3, clusterRef="dev"), cluster("empty"), broken=[Broken("TalosCluster", "bad", "clusters/bad.yaml", 4, "two colons")])
    for name, hint in (("pord", "Did you mean prod?"), ("zzz", "Check the name; talos_cluster_info lists the clusters.")):
        with pytest.raises(TalosError) as caught:
            info(ports(None, store), cluster=name)
        assert (caught.value.reason, caught.value.message, caught.value.hint) == ("RecordNotFound", f"There is no cluster {name} in memory.", hint)
    for name, machines in (("prod", []), ("empty", []), ("bad", []), ("dev", ["prod-3"])):
        assert [row.name for row in info(ports(None, store), cluster=name).machines] == machines


def test_a_vanished_record_is_reported() -> None:
    (warning,) = info(ports(None, Store(cluster(), machine(1), vanished=["prod-9"]))).plan.warnings
    assert warning.rule == "4/vanished" and "prod-9" in warning.message


def test_a_machine_that_was_not_read_for_want_of_credentials_is_not_called_unreachable() -> None:
    record = machine(1, "approved", status=CONVERGED)
    without = info(ports(Nodes(node("configured")), Store(cluster(), record)))
    other = info(ports(Nodes(node()), Store(cluster(), record), credentials=credentials))
    silent = info(ports(Nodes(), Store(cluster(), record), credentials=credentials))
    assert [outcome.unreachable for outcome in (without, other, silent)] == [(), (), ("prod-1",)]
    assert ["talosconfig" in warning.message for warning in without.plan.warnings] == [True] and len(other.plan.warnings) == 1
    assert [outcome.extra["records"][0]["node"]["reason"] for outcome in (without, other)] == ["SecretsUnavailable", "UnknownAuthority"]
    told = [outcome.extra["records"][0]["doing"] for outcome in (without, other)]
    assert "no credentials" in told[0]["what"] and "Give talosconfig" in told[0]["advice"] and "another cluster" in told[1]["advice"]


def test_every_operation_dials_the_observed_address_and_not_the_one_in_the_spec() -> None:
    """Section 3: every dial, in every module, uses the address to dial."""
    moved = {"observedEndpoint": "10.0.0.7", "observedEndpointFor": "10.0.0.1"}
    node = Node(facts("10.0.0.7", identity(1)))

    def asked(record: Record, run: object, request: object) -> list[str]:
        nodes = Nodes(node)
        given = ports(nodes, Store(cluster(), record), credentials=credentials)
        asyncio.run(run(request, given, Gate()))  # type: ignore[operator]
        return nodes.asked()[:1]

    assert asked(machine(1, "approved", status=moved), machine_info.run, machine_info.Request()) == ["10.0.0.7:50000"]
    assert asked(machine(1, status=moved), machine_approval.run, machine_approval.Request(("prod-1",), Wanted("", role="worker"))) == ["10.0.0.7:50000"]
    assert asked(machine(1, "approved", status=moved), machine_operation.run, machine_operation.Request(("prod-1",), edit=Edit("", trust=True))) == [
        "10.0.0.7:50000"
    ]
    assert asked(machine(1, status=moved), discover.run, discover.Request("prod", addresses=("10.0.0.7",))) == ["10.0.0.7:50000"]
