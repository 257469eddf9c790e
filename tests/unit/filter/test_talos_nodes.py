# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The list of machines of a new cluster: every mistake is told before anything is begun."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.ichor.talos.plugins.filter.talos_nodes import talos_bootstrap_node, talos_nodes_problem


def node(number: int, **more: Any) -> dict[str, Any]:
    return {"mac": f"3c:ec:ef:00:00:{number:02x}", "role": "controlplane", "hostname": f"cp-{number}", **more}


THREE = [node(1), node(2), node(3), node(4, role="worker", hostname="w-1", install={"disk": "/dev/sda"})]


def test_a_good_list_has_no_problem() -> None:
    assert talos_nodes_problem(THREE) == "" == talos_nodes_problem([node(1)])
    assert talos_nodes_problem([{"machine": "prod-1", "role": "controlplane", "accept_weak_identity": True}]) == ""


@pytest.mark.parametrize(("nodes", "says"), [
    ("cp-1,w-1", "has to be a list of machines"), ({"cp": node(1)}, "has to be a list of machines"), (["cp-1"], "has to be a list of machines"),
    ([], "has to be a list of machines"), (None, "has to be a list of machines"),
    ([node(1), {"mac": "3c:ec:ef:00:00:02", "hostname": "w-1"}], "Entry 2 (hostname w-1) has no role."),
    ([node(1, role="control-plane")], "Entry 1 (hostname cp-1) has the role control-plane."),
    ([node(1, hostnmae="x")], "has the unknown key hostnmae."), ([{"role": "worker"}], "Entry 1 (without a name) names no machine."),
    ([node(1, mac=" ")], "names no machine"),
    ([node(1), node(2, hostname="CP-1", role="worker")], "Two entries have hostname cp-1."),
    ([node(1), node(2, mac="3C:EC:EF:00:00:01", role="worker")], "Two entries have mac 3c:ec:ef:00:00:01."),
    ([node(1, role="worker")], "No entry has the role controlplane."), ([node(1), node(2)], "2 entries have the role controlplane."),
])
def test_a_mistake_is_one_sentence_and_one_of_what_to_do(nodes: Any, says: str) -> None:
    told = talos_nodes_problem(nodes)
    assert says in told and told.endswith(".") and told.count(". ") == 1


@pytest.mark.parametrize(("named", "hostname"), [("", "cp-1"), (None, "cp-1"), ("cp-2", "cp-2"), ("3C:EC:EF:00:00:03", "cp-3"), (" CP-3 ", "cp-3")])
def test_etcd_begins_on_the_first_control_plane_or_on_the_named_one(named: Any, hostname: str) -> None:
    assert talos_bootstrap_node([THREE[3], *THREE[:3]], named)["hostname"] == hostname


def test_another_name_is_that_of_a_record_and_without_a_control_plane_there_is_nothing() -> None:
    assert talos_bootstrap_node(THREE, "prod-5a1f0c3e") == {"machine": "prod-5a1f0c3e"}
    with pytest.raises(AnsibleFilterError, match="no entry has the role controlplane"):
        talos_bootstrap_node(THREE[3:])
