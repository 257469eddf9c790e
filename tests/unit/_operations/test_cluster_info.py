# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`talos_cluster_info`: records, numbers, the lock, and what control planes say; nothing is written, and no silence is an error."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import ServiceState
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import LeaseView
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, Broken
from ansible_collections.ichor.talos.plugins.module_utils._operations import cluster_info
from tests.unit.machine_world import NOW, Gate, Node, Nodes, Session, Store, cluster, credentials, facts, identity, machine, ports


def told(store: Store, *nodes: Node, **options: Any) -> Any:
    given = ports(Nodes(*nodes), store, credentials=credentials)
    outcome = asyncio.run(cluster_info.run(cluster_info.Request(**options), given, Gate(given.check)))
    assert store.writes == [] and not outcome.plan.steps
    return outcome


def test_all_clusters_with_their_machines_in_numbers() -> None:
    outcome = told(Store(cluster(), cluster("test"), machine(1, "approved"), machine(2), machine(3, clusterRef="test")), read_nodes=False)
    shown = {entry["metadata"]["name"]: entry for entry in outcome.extra["clusters"]}
    assert shown["prod"]["machines"]["approval"] == {"approved": 1, "pending": 1} and shown["test"]["machines"]["approval"] == {"pending": 1}
    assert shown["prod"]["lock"] == {"holder": "", "purpose": "", "since": "", "no_lock": ""} and shown["prod"]["etcd"] == []
    assert shown["prod"]["doing"]["what"]


def test_a_control_plane_that_is_silent_is_a_result() -> None:
    store = Store(cluster(), machine(1, "approved", role="controlplane"), machine(2, "approved", role="controlplane"))
    outcome = told(store, Node(facts("10.0.0.1", identity(1)), "silent"))
    assert sorted(outcome.unreachable) == ["prod-1", "prod-2"] and not outcome.refused
    assert {entry["reason"] for entry in outcome.extra["clusters"][0]["etcd"]} == {"NotListening"}


def test_a_control_plane_that_waits_for_its_bootstrap_costs_no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def services(session: Session) -> tuple[ServiceState, ...]:
        return (ServiceState("etcd", "Preparing"),)

    # Nobody answers a call about etcd's status here: it is not made.
    monkeypatch.setattr(Session, "services", services, raising=False)
    store = Store(cluster(), machine(1, "approved", role="controlplane"))
    outcome = told(store, Node(facts("10.0.0.1", identity(1)), "configured"))
    row = outcome.extra["clusters"][0]["etcd"][0]
    assert (row["answers"], row["reason"]) == (False, "NodeStarting") and "Preparing" in row["message"] and outcome.unreachable == ()


def test_who_holds_the_lock() -> None:
    store = Store(cluster())
    store.leases.read = lambda name: LeaseView(name, "run-7", "provisioning prod-1", NOW, NOW, 60.0, "1")  # type: ignore[assignment,method-assign,return-value]
    lock = told(store).extra["clusters"][0]["lock"]
    assert (lock["holder"], lock["purpose"]) == ("run-7", "provisioning prod-1") and lock["since"].endswith("Z")


def test_a_name_that_is_none_and_a_file_that_is_broken() -> None:
    store = Store(cluster(), broken=(Broken(CLUSTER, "test", "clusters/test.yaml", 3, "a tab"),))
    assert told(store).extra["broken"][0]["name"] == "test"
    for name, reason, hint in (("nobody", "RecordNotFound", "Check the name"), ("pord", "RecordNotFound", "Did you mean prod?"),
                               ("test", "RecordBroken", "Mend the file.")):
        with pytest.raises(TalosError) as caught:
            told(store, clusters=(name,))
        assert caught.value.reason == reason and hint in caught.value.hint
