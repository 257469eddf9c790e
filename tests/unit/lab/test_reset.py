# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resets on real etcd with the partitions of Talos 1.14: what goes, what survives, who is still a member, and a reset that hangs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.wire import message
from tests.unit.lab.lab_nodes import Nodes
from tests.unit.lab.real_etcd import ADMIN, Members, start, until

NAMES = ("cp1", "cp2", "cp3")


@pytest.fixture(scope="module")
def members() -> Iterator[Members]:
    with start() as lab:
        nodes = Nodes(lab, "v1.14.0-rc.1")
        nodes.control_plane("cp1")
        for name in NAMES[1:]:
            nodes.add(name, volumes=["ETCD", "CRI", "KUBELET", "LOG"])
            assert nodes.apply(name, nodes.config("controlplane", name)).code == "OK"
        members = Members(nodes)
        members.whole(*NAMES)
        yield members


def reset(members: Members, name: str, *labels: str, graceful: bool = True) -> None:
    request = message("machine.ResetRequest")(graceful=graceful, reboot=True)
    for label in labels:
        request.system_partitions_to_wipe.add(label=label, wipe=True)
    assert members.nodes.call(name, "Reset", request, ADMIN).code == "OK"


def back(members: Members, name: str) -> None:
    """It is configured anew, and the three are members again."""
    assert members.nodes.apply(name, members.nodes.config("controlplane", name)).code == "OK"
    members.whole(*NAMES)


def test_an_ungraceful_reset_leaves_the_member_and_what_was_not_named(members: Members) -> None:
    nodes, before = members.nodes, members.identifier("cp3")
    reset(members, "cp3", "STATE", "EPHEMERAL", graceful=False)
    nodes.wait("cp3", "maintenance", 40)
    assert {"ETCD", "CRI", "KUBELET", "LOG"} <= set(nodes.state("cp3")["partitions"]) and not {"STATE", "EPHEMERAL"} & set(nodes.state("cp3")["partitions"])
    assert "cp3" in members.list("cp1"), "nobody told etcd"
    back(members, "cp3")
    assert members.identifier("cp3") == before, "the data on its own partition survived, and so did the member"


def test_a_graceful_reset_leaves_etcd_and_wipes_what_is_named(members: Members) -> None:
    nodes, before = members.nodes, members.identifier("cp2")
    reset(members, "cp2", "STATE", "EPHEMERAL", "ETCD", "CRI", "KUBELET", "LOG")
    nodes.wait("cp2", "maintenance", 40)
    assert nodes.state("cp2")["partitions"] == ["EFI", "META"] and set(members.list("cp1")) == {"cp1", "cp3"}
    back(members, "cp2")
    assert members.identifier("cp2") != before


@pytest.mark.parametrize("phase", ["leaveEtcd", "wipe"])
def test_a_reset_that_hangs_has_answered_ok(members: Members, phase: str) -> None:
    nodes = members.nodes
    nodes.lab.hold(node=nodes.key("cp3"), phase=phase)
    reset(members, "cp3", "STATE", "EPHEMERAL", "ETCD")
    until(lambda: nodes.state("cp3")["stage"] == "resetting", "cp3 resets")
    assert ("cp3" in members.list("cp1")) or phase == "wipe"
    assert "STATE" in nodes.state("cp3")["partitions"]
    nodes.lab.hold(node=nodes.key("cp3"), phase=phase, held=False)
    nodes.wait("cp3", "maintenance", 40)
    back(members, "cp3")
