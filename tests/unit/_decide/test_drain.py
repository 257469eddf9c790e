# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which pods go, what blocks them, and what would be lost with the node (design sections 11 and 14)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.drain import (
    REBOOT, REMOVAL, ROWS, blocked_now, budgets_of, elsewhere, is_other_machine, left_over, matches, named, stays, to_go, unowned,
)
from ansible_collections.ichor.talos.plugins.module_utils._decide.drain_volumes import lost_with, told
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import swapped_uuid
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import NodePlace
from ansible_collections.ichor.talos.plugins.module_utils._model.workloads import Budget, Hosting, Pod, Requirement, Volume
from hypothesis import given
from hypothesis import strategies as st
from tests.unit._operations import world as w

NODE = NodePlace("w1", ("10.0.0.1",), w.uuid(1), "uid-w1", "w1.example", ready=True)
WEB = Pod("shop", "web-1", "uid-1", owner_kind="ReplicaSet", owner="web", labels={"app": "web"})

FATES = [
    ("a pod of a ReplicaSet", WEB, "", ""),
    ("of a StatefulSet with a scratch volume", replace(WEB, owner_kind="StatefulSet", scratch=("tmp",)), "", ""),
    ("of a Job", replace(WEB, owner_kind="Job"), "", ""),
    ("told to end", replace(WEB, deleting=True), "", ""),
    ("not ready", replace(WEB, ready=False), "", ""),
    ("pending", replace(WEB, phase="Pending"), "", ""),
    ("of a DaemonSet", replace(WEB, owner_kind="DaemonSet"), "14/pod-daemonset", "14/pod-daemonset"),
    ("static", replace(WEB, owner_kind="Node", mirror=True), "14/pod-mirror", "14/pod-mirror"),
    ("finished", replace(WEB, owner_kind="Job", phase="Succeeded"), "14/pod-finished", "14/pod-finished"),
    ("failed", replace(WEB, owner_kind="", phase="Failed"), "14/pod-finished", "14/pod-finished"),
    ("of nobody", replace(WEB, owner_kind=""), "", "14/pod-bare"),
]


@pytest.mark.parametrize(("pod", "removal", "reboot"), [row[1:] for row in FATES], ids=[row[0] for row in FATES])
def test_fate(pod: Pod, removal: str, reboot: str) -> None:
    for purpose, wanted in ((REMOVAL, removal), (REBOOT, reboot)):
        row = stays(pod, purpose)
        assert (row.id if row is not None else "") == wanted and (to_go([pod], purpose) == (() if wanted else (pod,)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_that_is_taken_away_is_noticed(row: object) -> None:
    rest = tuple(one for one in ROWS if one is not row)

    def told_by(rows: tuple[object, ...]) -> list[str]:
        found = [stays(pod, purpose, rows) for dummy, pod, *unused in FATES for purpose in (REMOVAL, REBOOT)]  # type: ignore[arg-type]
        return [one.id if one is not None else "" for one in found]

    assert told_by(rest) != told_by(ROWS) and row in ROWS


def test_pods_of_nobody_are_told_and_finished_ones_are_not() -> None:
    bare, done = replace(WEB, owner_kind=""), replace(WEB, name="done", owner_kind="", phase="Succeeded")
    assert unowned([WEB, bare, done], REMOVAL) == unowned([bare], REBOOT) == (bare,)


SELECTORS = [
    ((), {"a": "1"}, True), (None, {"a": "1"}, False),
    ((Requirement("a", "In", ("1", "2")),), {"a": "2"}, True), ((Requirement("a", "In", ("1",)),), {"a": "2"}, False),
    ((Requirement("a", "In", ("1",)),), {}, False),
    ((Requirement("a", "NotIn", ("1",)),), {"a": "1"}, False), ((Requirement("a", "NotIn", ("1",)),), {}, True),
    ((Requirement("a", "Exists"),), {"a": ""}, True), ((Requirement("a", "Exists"),), {"b": ""}, False),
    ((Requirement("a", "DoesNotExist"),), {"b": ""}, True), ((Requirement("a", "DoesNotExist"),), {"a": ""}, False),
    ((Requirement("a", "Wonders"),), {"b": ""}, False),
    ((Requirement("a", "Exists"), Requirement("b", "DoesNotExist")), {"a": "", "b": ""}, False),
]


@pytest.mark.parametrize(("selector", "labels", "wanted"), SELECTORS)
def test_selectors_select_as_kubernetes_does(selector: tuple[Requirement, ...] | None, labels: dict[str, str], wanted: bool) -> None:
    assert matches(selector, labels) is wanted


def budget(allowed: int, **changes: object) -> Budget:
    return replace(Budget("shop", "web", (Requirement("app", "In", ("web",)),), allowed), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("pod", "budgets", "says"), [
    (WEB, (budget(0),), "PodDisruptionBudget shop/web allows no disruption"), (WEB, (budget(1),), ""), (WEB, (budget(0, namespace="other"),), ""),
    (WEB, (), ""), (replace(WEB, labels={}), (budget(0),), ""), (replace(WEB, deleting=True), (budget(0),), ""), (replace(WEB, ready=False), (budget(0),), ""),
    (replace(WEB, owner_kind="DaemonSet"), (budget(0),), ""), (WEB, (budget(1), budget(1, name="two")), "it has 2 PodDisruptionBudgets: shop/web, shop/two"),
], ids=["none-allowed", "allowed", "elsewhere", "none", "unselected", "ending", "not-ready", "stays", "two"])
def test_what_blocks_now(pod: Pod, budgets: tuple[Budget, ...], says: str) -> None:
    found = blocked_now(Hosting(NODE, (pod,), budgets=budgets), REMOVAL)
    assert len(found) == bool(says) and all(says in text and str(pod) in text for text in found)
    assert all(one in budgets for one in budgets_of(pod, budgets))


def test_what_is_left_is_named_with_why() -> None:
    ending = replace(WEB, name="web-2", uid="uid-2", deleting=True)
    assert left_over([WEB, ending], {"uid-1": "the budget"}) == "shop/web-1 (the budget), shop/web-2 (it is still ending)"
    assert named(map(str, range(20))) == "0, 1, 2, 3, 4, 5, 6, 7 and 12 more"


def test_another_board_is_told_by_its_system_uuid() -> None:
    assert is_other_machine(NODE, w.uuid(9)) and not is_other_machine(NODE, w.uuid(1).upper())
    assert not is_other_machine(NODE, "") and not is_other_machine(replace(NODE, system_uuid=""), w.uuid(9))
    assert not is_other_machine(replace(NODE, system_uuid=swapped_uuid(w.uuid(1))), w.uuid(1))


def test_where_pods_can_go() -> None:
    others = [NODE, replace(NODE, name="w2"), replace(NODE, name="w3", ready=False), replace(NODE, name="w4", unschedulable=True)]
    assert elsewhere(others, NODE) == 1


def volume(*places: tuple[str, ...], local: bool = True) -> Volume:
    return Volume("pv", "shop", "data", local, places)


DB = replace(WEB, name="db-0", owner_kind="StatefulSet", claims=("data",))
LOST = [
    ("a local volume of this node", DB, volume(("w1",)), "shop/data of shop/db-0"),
    ("by its host name", DB, volume(("zone-a", "w1.example"), local=False), "shop/data of shop/db-0"),
    ("of another node", DB, volume(("w2",)), ""),
    ("of a zone", DB, volume(("zone-a",), local=False), ""),
    ("of this node or another", DB, volume(("w1",), ("w2",), local=False), ""),
    ("that follows the pod", DB, volume(local=False), ""),
    ("a folder volume that is pinned nowhere", DB, volume(), "shop/data of shop/db-0"),
    ("that no pod has now", WEB, volume(("w1",)), "shop/data, which no pod has now"),
    ("a claim without a volume", DB, None, ""),
    ("a scratch volume", replace(WEB, scratch=("tmp",)), None, "emptyDir tmp of shop/web-1"),
    ("a scratch volume of a DaemonSet", replace(WEB, owner_kind="DaemonSet", scratch=("tmp",)), None, ""),
    ("a folder", replace(WEB, paths=("/var/mnt/../lib/data",)), None, "/var/lib/data of shop/web-1"),
    ("a folder of a DaemonSet", replace(WEB, owner_kind="DaemonSet", paths=("/var/lib/longhorn",)), None, "/var/lib/longhorn of shop/web-1"),
    ("a folder of a static pod", replace(WEB, mirror=True, paths=("/var/lib/data",)), None, ""),
    ("no data of its own", replace(WEB, paths=("/var/run/x", "/var/log", "/var/lib/kubelet/pods", "/etc/x", "/var", "/variety")), None, ""),
    ("a mirror pod's claim", replace(DB, mirror=True), volume(("w2",)), ""),
]


@pytest.mark.parametrize(("pod", "found", "says"), [row[1:] for row in LOST], ids=[row[0] for row in LOST])
def test_lost(pod: Pod, found: Volume | None, says: str) -> None:
    lost = lost_with(Hosting(NODE, (pod,), (found,) if found is not None else ()))
    assert [told(one) for one in lost] == ([says] if says else [])


PODS = st.builds(
    Pod, st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "z"]), st.uuids().map(str), st.sampled_from(["Running", "Pending", "Succeeded", "Failed"]),
    st.sampled_from(["", "ReplicaSet", "DaemonSet", "Node"]), st.just(""), st.booleans(), st.booleans(), st.booleans(),
    st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["1", "2"])), scratch=st.sampled_from([(), ("tmp",)]))


@given(st.lists(PODS, max_size=6), st.sampled_from([REMOVAL, REBOOT]))
def test_nothing_goes_that_would_come_back_there_or_never(pods: list[Pod], purpose: str) -> None:
    going = to_go(pods, purpose)
    assert all(pod in pods and not pod.mirror and pod.owner_kind != "DaemonSet" for pod in going)
    assert purpose == REMOVAL or all(pod.owner_kind for pod in going)
    # Whatever runs and has a controller elsewhere does go.
    assert all(pod in going for pod in pods if pod.owner_kind in ("ReplicaSet", "Node") and not pod.mirror and pod.phase in ("Running", "Pending"))
    assert all(pod in to_go(pods, REMOVAL) for pod in to_go(pods, REBOOT))
