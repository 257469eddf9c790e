# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Discovery from observation to the store (design section 6)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint, Probe
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, MACHINE, Ref
from ansible_collections.ichor.talos.plugins.module_utils._operations.discover import Request, run
from tests.unit._operations.kubernetes_world import Kubernetes
from tests.unit.machine_world import Clock, Gate, Node, Nodes, Store, cluster, facts, fingerprint, identity, machine, ports, uuid_of


def discover(given: Ports, **options: object) -> Outcome:
    return asyncio.run(run(Request(**{"cluster": "prod", **options}), given, Gate(given.check)))


def test_a_machine_in_a_registered_range_becomes_a_pending_record_with_its_pin() -> None:
    store, clock = Store(cluster()), Clock()
    outcome = discover(ports(Nodes(Node(facts("10.0.0.1", identity(1)))), store, clock=clock))
    record = store.get(MACHINE, f"prod-{uuid_of(1)[:8]}")
    assert record is not None
    assert record.spec == {
        "clusterRef": "prod",
        "endpoint": "10.0.0.1",
        "approvalState": "pending",
        "identity": {"uuid": uuid_of(1), "serial": "SN-0001-A", "macs": ["3c:ec:ef:00:00:01"]},
    }
    assert record.status["maintenanceFingerprint"] == fingerprint("one")
    assert [disk["name"] for disk in record.status["discoveredDisks"]] == ["nvme0n1", "sda"]
    assert record.status["talosVersion"] == "v1.13.9" and record.status["secureBoot"] is False
    assert clock.slept == [5.0] and len(outcome.executed) == 1
    assert [row.reason for row in outcome.machines] == ["PendingApproval"]


def test_a_second_run_changes_nothing_and_writes_nothing() -> None:
    store = Store(cluster())
    nodes = Nodes(Node(facts("10.0.0.1", identity(1))))
    discover(ports(nodes, store))
    store.writes.clear()
    outcome = discover(ports(nodes, store))
    assert not outcome.plan.changed and store.writes == []


def test_a_run_that_changes_nothing_says_what_it_saw_live_and_in_the_result() -> None:
    lines: list[str] = []
    given = ports(Nodes(Node(facts("10.0.0.1", identity(1)))), Store(cluster(), machine(1)))
    outcome = discover(replace(given, progress=lines.append))
    assert not outcome.plan.changed and lines[-1] == outcome.message
    assert "1 in maintenance mode" in outcome.message and "1 pending machine waits for approval: prod-1." in outcome.message


def test_addresses_that_are_not_dialled_and_vanished_records_are_warned_of() -> None:
    store = Store(cluster(discovery={"addresses": ["127.0.0.1"]}), vanished=["prod-9"])
    outcome = discover(ports(Nodes(), store))
    assert [warning.rule for warning in outcome.plan.warnings] == ["6/not-dialled", "4/vanished"] and outcome.extra["probed"] == 0


def test_a_certificate_that_differs_at_the_second_reading_is_not_pinned() -> None:
    store = Store(cluster())
    outcome = discover(ports(Nodes(Node(facts("10.0.0.1", identity(1)), keys=["a", "a", "b"])), store))
    assert store.list(MACHINE).records == () and outcome.executed == ()
    assert outcome.waiting_for and outcome.plan.changed


def test_check_mode_shows_the_same_plan_and_writes_nothing() -> None:
    nodes = Nodes(Node(facts("10.0.0.1", identity(1))))
    store, clock = Store(cluster()), Clock()
    seen = discover(ports(nodes, store, check=True, clock=clock))
    assert store.writes == [] and clock.slept == [] and seen.waiting_for
    assert [record.name for record in seen.would_be] == [f"prod-{uuid_of(1)[:8]}"]
    assert discover(ports(nodes, store)).plan.id == seen.plan.id


def test_a_changed_certificate_of_a_pending_machine_is_refreshed_with_an_event() -> None:
    store = Store(cluster(), machine(1))
    discover(ports(Nodes(Node(facts("10.0.0.1", identity(1), "two"))), store))
    record = store.get(MACHINE, "prod-1")
    assert record is not None and record.status["maintenanceFingerprint"] == fingerprint("two")
    (event,) = store.told
    assert (event.type, event.reason) == ("Normal", "MaintenanceIdentityRefreshed")
    assert fingerprint("one") in event.message and fingerprint("two") in event.message


def test_a_pending_machine_that_moved_is_followed_after_its_own_address_was_asked() -> None:
    store = Store(cluster(discovery={"ranges": ["10.0.0.5-10.0.0.9"]}), machine(1))
    nodes = Nodes(Node(facts("10.0.0.7", identity(1))))
    outcome = discover(ports(nodes, store))
    record = store.get(MACHINE, "prod-1")
    assert record is not None
    assert (record.status["observedEndpoint"], record.status["observedEndpointFor"]) == ("10.0.0.7", "10.0.0.1")
    assert "10.0.0.1:50000" in nodes.asked("probe") and not outcome.plan.changed
    assert [move.what for move in outcome.transitions] == ["observedEndpoint"]


def test_an_approved_and_sent_machine_is_not_asked_and_not_moved() -> None:
    sent = machine(1, "approved", status={"configStoredAt": "2026-01-01T00:00:00Z"})
    store = Store(cluster(), sent)
    nodes = Nodes(Node(facts("10.0.0.1", identity(1), "two")), Node(facts("10.0.0.7", identity(1), "two")))
    outcome = discover(ports(nodes, store))
    assert "10.0.0.1:50000" not in nodes.asked() and store.writes == []
    assert [found["rule"] for found in outcome.extra["found"]] == ["6/sent-other"]


def test_already_configured_is_told_once_and_again_after_the_address_was_in_maintenance() -> None:
    store = Store(cluster())
    node = Node(facts("10.0.0.4", identity(4)), "configured")
    discover(ports(Nodes(node), store))
    discover(ports(Nodes(node), store, clock=Clock(at=1_790_000_300.0)))
    assert [event.reason for event in store.told] == ["AlreadyConfigured"]
    assert store.told[0].ref == Ref(CLUSTER, "prod") and "add_machine" in store.told[0].message and "reclaim" in store.told[0].message
    assert store.list(MACHINE).records == ()
    node.mode = "maintenance"
    discover(ports(Nodes(node), store, clock=Clock(at=1_790_000_600.0)))
    node.mode = "configured"
    discover(ports(Nodes(node), store, clock=Clock(at=1_790_000_900.0)))
    assert [event.reason for event in store.told] == ["AlreadyConfigured", "AlreadyConfigured"]


def test_a_named_address_is_probed_even_where_discovery_would_not() -> None:
    store = Store(cluster(), machine(1, "rejected"))
    nodes = Nodes(Node(facts("10.0.0.1", identity(1), "two")))
    discover(ports(nodes, store))
    assert nodes.asked() == [f"10.0.0.{number}:50000" for number in range(9, 1, -1)]
    nodes.calls.clear()
    discover(ports(nodes, store), addresses=("10.0.0.1",))
    assert nodes.asked("probe") == ["10.0.0.1:50000"] and store.writes == []


def test_without_a_store_it_only_reads() -> None:
    outcome = discover(ports(Nodes(Node(facts("10.0.0.1", identity(1))))), cluster="", addresses=("10.0.0.1,10.0.0.2",), register=False)
    (found,) = outcome.extra["found"]
    assert found["uuid"] == uuid_of(1) and found["fingerprint"] == fingerprint("one")
    assert not outcome.plan.changed and outcome.extra["silent"] == 1


def test_a_scan_is_kind_to_switches_unless_asked() -> None:
    """Section 6: under 256 unresolved at once, 1,000 new connections a second unless asked, 2 s for a connection."""
    paces: list[tuple[float, int, float]] = []

    class Watched(Nodes):
        async def scan(self, targets, *, rate, unresolved, timeout):  # type: ignore[no-untyped-def, override]
            paces.append((rate, unresolved, timeout))
            async for probe in super().scan(targets, rate=rate, unresolved=unresolved, timeout=timeout):
                yield probe

    discover(ports(Watched(), Store(cluster())))
    discover(ports(Watched(), Store(cluster())), rate=50.0, unresolved=8)
    assert paces == [(1000.0, 256, 2.0), (50.0, 8, 2.0)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"cluster": "other"}, "RecordNotFound"),
        ({"addresses": ("0.0.0.0/0",)}, "RangeTooLarge"),
        ({"addresses": ("http://10.0.0.1",)}, "InvalidAddress"),
    ],
)
def test_what_is_asked_wrongly_is_refused_before_a_packet_leaves(options: dict[str, object], reason: str) -> None:
    nodes = Nodes()
    with pytest.raises(TalosError) as caught:
        discover(ports(nodes, Store(cluster())), **options)
    assert caught.value.reason == reason and nodes.calls == []


def test_a_record_that_somebody_else_made_meanwhile_costs_only_this_step() -> None:
    clock = Clock()
    store = Store(cluster())
    clock.on_sleep = lambda: store.records.update({(MACHINE, f"prod-{uuid_of(1)[:8]}"): machine(1, name=f"prod-{uuid_of(1)[:8]}")})
    outcome = discover(ports(Nodes(Node(facts("10.0.0.1", identity(1))), Node(facts("10.0.0.2", identity(2)))), store, clock=clock))
    assert len(outcome.plan.steps) == 2 and len(outcome.executed) == 1 and "somebody else" in outcome.waiting_for[0]


def test_a_host_with_many_invented_machines_makes_few_warnings_and_fills_no_store() -> None:
    store = Store(cluster(discovery={"ranges": ["10.0.0.0/24"]}))
    for turn in range(2):
        nodes = Nodes(
            *(Node(facts(f"10.0.0.{number}", identity(number, uuid=f"0000{turn:04x}-0001-4000-8000-0000000000{number:02x}"))) for number in range(1, 251))
        )
        outcome = discover(ports(nodes, store))
        assert len(store.list(MACHINE).records) == 100 and len(outcome.plan.warnings) <= 12
    assert outcome.executed == ()


def test_a_named_address_that_is_not_dialled_is_told() -> None:
    nodes = Nodes(Node(facts("10.0.0.1", identity(1))))
    outcome = discover(ports(nodes, Store(cluster())), addresses=("127.0.0.1", "10.0.0.1"))
    assert outcome.blocked == ("127.0.0.1:50000",) and not outcome.refused and len(outcome.executed) == 1
    outcome = discover(ports(nodes, Store(cluster())), addresses=("10.9.0.1",))
    assert (outcome.refused, outcome.reason) == (True, "EndpointRefused") and "10.9.0.1:50000" not in nodes.asked()


def test_a_name_that_resolves_to_what_is_not_dialled_is_told() -> None:
    class Resolving(Nodes):
        async def probe(self, endpoint: Endpoint, timeout: float) -> Probe:
            return Probe(endpoint, "Unreachable", reason="EndpointRefused", message=f"{endpoint.host} resolves to 127.0.0.1.")

    outcome = discover(ports(Resolving(), Store(cluster())), addresses=("node-1",))
    assert (outcome.refused, outcome.reason) == (True, "EndpointRefused") and "resolves to 127.0.0.1" in outcome.message


def test_without_a_cluster_the_message_says_that_nothing_is_registered() -> None:
    outcome = discover(ports(Nodes()), cluster="", addresses=("10.0.0.1",))
    assert "nothing is registered" in outcome.message


def test_a_node_that_hangs_up_during_the_reading_is_a_line_of_the_result() -> None:
    nodes = Nodes(Node(facts("10.0.0.1", identity(1))), Node(facts("10.0.0.2", identity(2))))

    good = nodes.at[facts("10.0.0.2", identity(2)).endpoint]
    nodes.at[facts("10.0.0.1", identity(1)).endpoint] = _Broken(good)
    outcome = discover(ports(nodes, Store(cluster())))
    problems = [found for found in outcome.extra["found"] if found["rule"] == "6/no-facts"]
    assert [found["address"] for found in problems] == ["10.0.0.1:50000"]
    assert len(outcome.executed) == 1


class _Broken(Node):
    """A node whose second handshake never comes."""

    def __init__(self, like: Node) -> None:
        super().__init__(replace(like.facts, endpoint=facts("10.0.0.1", identity(1)).endpoint))
        self.count = 0

    def handshake(self):  # type: ignore[no-untyped-def]
        self.count += 1
        if self.count > 1:
            raise TalosError("ConnectionLost", "The connection broke.", "Look at the node.")
        return super().handshake()


def running_cluster() -> Store:
    return Store(replace(cluster(), status={"bootstrappedAt": "2023-11-01T00:00:00Z"}))


def nodes_of_kubernetes(marked: str = "") -> Kubernetes:
    """The Nodes n1 at 10.0.0.1 and n2 at 10.9.9.9, outside of every range."""
    kubernetes = Kubernetes(lambda what: None)
    for name, address in (("n1", "10.0.0.1"), ("n2", "10.9.9.9")):
        kubernetes.add(name)
        kubernetes.known[name] = replace(kubernetes.known[name], addresses=(address,), reset_at="2023-11-14T00:00:00Z" if name == marked else "")
    return kubernetes


@pytest.mark.parametrize("marked, made", [("", []), ("n1", ["10.0.0.1"]), ("n2", ["10.9.9.9"])])
def test_the_host_of_a_node_is_probed_only_where_this_product_reset_it(marked: str, made: list[str]) -> None:
    nodes = Nodes(Node(facts("10.0.0.1", identity(1))), Node(facts("10.9.9.9", identity(2))))
    given = replace(ports(nodes, running_cluster()), workloads=nodes_of_kubernetes(marked))
    outcome = discover(given)
    assert [step.target.address.rpartition(":")[0] for step in outcome.plan.steps] == made
    skipped = [entry["rule"] for entry in outcome.extra["not_probed"]]  # type: ignore[union-attr, index, call-overload]
    assert skipped == ([] if marked == "n1" else ["6/node-host"])


def test_kubernetes_is_asked_only_of_a_cluster_that_runs_and_not_about_named_addresses() -> None:
    kubernetes = nodes_of_kubernetes()
    kubernetes.away = True
    node = Node(facts("10.0.0.1", identity(1)))
    for store, options in ((running_cluster(), {}), (Store(cluster()), {}), (running_cluster(), {"addresses": ("10.0.0.1",)})):
        outcome = discover(replace(ports(Nodes(node), store), workloads=kubernetes), **options)
        assert len(outcome.plan.steps) == 1, "what cannot be asked keeps nobody from being found"
