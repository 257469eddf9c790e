# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Three lab nodes with real etcd members. Each test leaves three healthy members behind."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from tests.lab.control import Lab
from tests.lab.wire import message
from tests.unit.lab.lab_nodes import Nodes
from tests.unit.lab.real_etcd import ADMIN, Members, start, until

NAMES = ("cp1", "cp2", "cp3")
#: The magic number of the database's first page.
DATABASE = bytes.fromhex("edda0ced")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with start() as lab:
        yield lab


@pytest.fixture(scope="module")
def members(lab: Lab) -> Members:
    nodes = Nodes(lab)
    nodes.control_plane("cp1")
    for name in NAMES[1:]:
        nodes.add(name)
        assert nodes.apply(name, nodes.config("controlplane", name)).code == "OK"
    members = Members(nodes)
    members.whole(*NAMES)
    return members


def events(members: Members, *what: str) -> list[tuple[str, str]]:
    """What happened to which node's etcd, in order."""
    return [(entry["node"].removeprefix(members.nodes.prefix), entry["what"]) for entry in members.nodes.lab.log(event="node") if entry["what"] in what]


def test_learners_join_one_at_a_time(members: Members) -> None:
    """Two control planes that come up together are added one after the other, each promoted before the next is added."""
    steps = events(members, "etcd-learner-added", "etcd-promoted")[:4]
    for added, promoted in zip(steps[::2], steps[1::2], strict=True):
        assert (added[1], promoted[1]) == ("etcd-learner-added", "etcd-promoted")
        assert added[0] == promoted[0]
    assert {node for node, unused in steps} == {"cp2", "cp3"}


def test_every_member_tells_the_same(members: Members) -> None:
    seen = [{name: (member.id, member.peer_urls[0], member.client_urls[0]) for name, member in members.list(node).items()} for node in NAMES]
    assert seen[0] == seen[1] == seen[2]
    assert seen[0]["cp2"][1:] == (f"https://{members.nodes.addresses['cp2']}:2380", f"https://{members.nodes.addresses['cp2']}:2379")
    states = {node: members.status(node) for node in NAMES}
    assert {node: state.member_id for node, state in states.items()} == {name: found[0] for name, found in seen[0].items()}
    assert len({state.leader for state in states.values()}) == 1 and states["cp1"].leader in {found[0] for found in seen[0].values()}
    assert {state.protocol_version for state in states.values()} == {"3.6.13"} and not any(state.is_learner for state in states.values())


def test_the_control_interface_tells_it_too(members: Members) -> None:
    found = members.nodes.state("cp3")["etcd"]
    assert sorted(member["name"] for member in found) == list(NAMES)
    assert [member["alive"] for member in found] == [True] * 3 and sum(member["leader"] for member in found) == 1


def test_the_resource_has_the_id_of_the_member(members: Members) -> None:
    outcome = members.nodes.get("cp2", "etcd", "EtcdMembers.etcd.talos.dev", "local", ADMIN)
    assert f"{members.identifier('cp2'):016x}" in message("cosi.resource.GetResponse").FromString(outcome.messages[0]).resource.spec.yaml_spec


def test_a_snapshot_is_a_database_with_its_hash(members: Members) -> None:
    outcome = members.nodes.call("cp2", "EtcdSnapshot", role=ADMIN)
    assert outcome.code == "OK"
    data = b"".join(message("common.Data").FromString(item).bytes for item in outcome.messages)
    assert len(data) % 512 == 32 and data[16:20] == DATABASE
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    assert {len(message("common.Data").FromString(item).bytes) for item in outcome.messages[:-1]} == {1024}


def test_alarms_and_defragmentation(members: Members) -> None:
    assert not members.ask("cp1", "EtcdAlarmList").member_alarms and not members.ask("cp1", "EtcdAlarmDisarm").member_alarms
    members.ask("cp1", "EtcdDefragment")


def test_leadership_is_forfeited(members: Members) -> None:
    ids = {name: member.id for name, member in members.list("cp1").items()}
    leader = next(name for name, number in ids.items() if number == members.status("cp1").leader)
    other = next(name for name in NAMES if name != leader)
    assert members.ask(other, "EtcdForfeitLeadership").member == ""
    heir = members.ask(leader, "EtcdForfeitLeadership").member
    assert heir in NAMES and heir != leader
    until(lambda: members.status(leader).leader == ids[heir], "the new leader is known")


def test_an_unknown_member_is_not_removed(members: Members) -> None:
    outcome = members.nodes.call("cp1", "EtcdRemoveMemberByID", message("machine.EtcdRemoveMemberByIDRequest")(member_id=170), ADMIN)
    assert (outcome.code, outcome.details) == ("NOT_FOUND", "failed to remove member 170: etcdserver: member not found")


def test_a_wiped_node_evicts_the_member_of_its_name(members: Members) -> None:
    nodes, before = members.nodes, members.list("cp1")
    mark = nodes.lab.mark()
    nodes.lab.wipe(node=nodes.key("cp3"))
    nodes.wait("cp3", "maintenance")
    assert set(members.list("cp1")) == set(NAMES)
    assert nodes.apply("cp3", nodes.config("controlplane", "cp3")).code == "OK"
    until(lambda: len(events_since(members, mark, "etcd-promoted")) == 1, "the wiped node is a member again")
    members.whole(*NAMES)
    after = members.list("cp1")
    assert after["cp3"].id != before["cp3"].id and after["cp1"].id == before["cp1"].id
    assert [entry["member"] for entry in events_since(members, mark, "etcd-evicts")] == [f"{before['cp3'].id:016x}"]


def events_since(members: Members, mark: int, what: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = members.nodes.lab.log(since=mark, event="node", what=what)
    return found


def test_a_removed_member_restarts_for_ever_and_its_wiped_node_joins_anew(members: Members) -> None:
    nodes, gone = members.nodes, members.identifier("cp3")
    mark = nodes.lab.mark()
    members.remove("cp1", gone)
    until(lambda: len(events_since(members, mark, "etcd-ended")) > 1, "the removed member ends, starts and ends")
    assert set(members.list("cp1")) == {"cp1", "cp2"} and set(members.list("cp3", local=False)) == {"cp1", "cp2"}
    outcome = nodes.call("cp3", "EtcdMemberList", message("machine.EtcdMemberListRequest")(query_local=True), ADMIN, deadline=0.3)
    assert outcome.code in ("DEADLINE_EXCEEDED", "RST_STREAM 8")
    nodes.lab.wipe(node=nodes.key("cp3"), what="EPHEMERAL")
    members.whole(*NAMES)
    assert members.identifier("cp3") != gone


def test_without_a_quorum_there_is_no_leader_until_the_others_are_back(members: Members) -> None:
    nodes, before = members.nodes, {name: members.identifier(name) for name in NAMES}
    for name in NAMES[1:]:
        nodes.lab.power(node=nodes.key(name), state="off")

    until(lambda: members.status("cp1").leader == 0, "etcd misses its leader")
    outcome = nodes.call("cp1", "EtcdMemberList", message("machine.EtcdMemberListRequest")(query_local=True), ADMIN, deadline=8.0)
    assert (outcome.code, outcome.details) == ("UNKNOWN", "etcdserver: no leader")
    outcome = nodes.call("cp1", "EtcdRemoveMemberByID", message("machine.EtcdRemoveMemberByIDRequest")(member_id=before["cp3"]), ADMIN, deadline=8.0)
    assert outcome.code == "UNKNOWN"
    for name in NAMES[1:]:
        nodes.lab.power(node=nodes.key(name), state="on")
    members.whole(*NAMES)
    assert {name: members.identifier(name) for name in NAMES} == before


def test_a_member_keeps_its_data_over_a_reboot(members: Members) -> None:
    nodes, before, boots = members.nodes, members.identifier("cp2"), members.nodes.state("cp2")["boots"]
    assert nodes.call("cp2", "Reboot", role=ADMIN).code == "OK"
    until(lambda: nodes.state("cp2")["boots"] > boots, "cp2 reboots")
    members.whole(*NAMES)
    assert members.identifier("cp2") == before


def test_a_graceful_reset_leaves_the_cluster(members: Members) -> None:
    nodes = members.nodes
    request = message("machine.ResetRequest")(graceful=True, reboot=True)
    for label in ("STATE", "EPHEMERAL"):
        request.system_partitions_to_wipe.add(label=label, wipe=True)
    assert nodes.call("cp3", "Reset", request, ADMIN).code == "OK"
    nodes.wait("cp3", "maintenance", 40)
    assert set(members.list("cp1")) == {"cp1", "cp2"}
    assert nodes.apply("cp3", nodes.config("controlplane", "cp3")).code == "OK"
    members.whole(*NAMES)
