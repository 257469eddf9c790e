# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What happens to lab nodes from outside of the product: edits by hand, upgrade-k8s, wipes, lost routes, flapping, clocks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.lab.control import Lab, LabError
from tests.lab.wire import message
from tests.lab.wireclient import WireClient, WireError, context
from tests.unit.lab.lab_nodes import PORT, Nodes
from tests.unit.lab.real_etcd import until

ADMIN = "os:admin"


@pytest.fixture(scope="module", params=["v1.13.9", "v1.14.0-rc.1"])
def nodes(request: pytest.FixtureRequest) -> Iterator[Nodes]:
    with Lab.start(speed=40) as lab:
        nodes = Nodes(lab, request.param)
        nodes.control_plane("cp1")
        nodes.join("w1", "worker")
        yield nodes


def stored(nodes: Nodes, name: str, which: str = "active") -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(nodes.lab.config(node=nodes.key(name), which=which)) if document]


def volumes(nodes: Nodes, name: str) -> dict[str, str]:
    """Partition labels with their file systems, as a client sees them."""
    found = {}
    for number in range(1, 10):
        outcome = nodes.get(name, "runtime", "DiscoveredVolumes.block.talos.dev", f"sda{number}")
        if outcome.code == "OK":
            spec = yaml.safe_load(message("cosi.resource.GetResponse").FromString(outcome.messages[0]).resource.spec.yaml_spec)
            found[spec["partition_label"]] = spec.get("name") or ""
    return found


def test_an_edit_changes_what_runs_and_what_is_stored(nodes: Nodes) -> None:
    mark = nodes.lab.mark()
    said = nodes.lab.edit(node=nodes.key("w1"), patch={"machine": {"sysctls": {"vm.max_map_count": "262144"}}})
    assert said == "Applied configuration without a reboot"
    for which in ("active", "persistent", "stored"):
        assert stored(nodes, "w1", which)[0]["machine"]["sysctls"] == {"vm.max_map_count": "262144"}
    nodes.lab.edit(node=nodes.key("w1"), patch={"machine": {"sysctls": None}})
    assert "sysctls" not in stored(nodes, "w1")[0]["machine"]
    assert nodes.lab.writes(since=mark) == {}
    assert len(nodes.lab.log(since=mark, event="node", what="edited-by-hand")) == 2


def test_a_staged_edit_changes_only_what_is_stored(nodes: Nodes) -> None:
    nodes.lab.edit(node=nodes.key("w1"), patch={"machine": {"sysctls": {"a": "b"}}}, mode="staged")
    assert "sysctls" in stored(nodes, "w1", "persistent")[0]["machine"] and "sysctls" not in stored(nodes, "w1")[0]["machine"]
    nodes.lab.edit(node=nodes.key("w1"), patch={}, mode="auto")
    assert "sysctls" not in stored(nodes, "w1", "persistent")[0]["machine"]


def test_an_edit_of_a_document_and_one_that_talos_refuses(nodes: Nodes) -> None:
    nodes.lab.edit(node=nodes.key("w1"), kind="HostnameConfig", patch={"hostname": "other"})
    assert nodes.state("w1")["hostname"] == "other"
    nodes.lab.edit(node=nodes.key("w1"), kind="HostnameConfig", patch={"hostname": "w1"})
    with pytest.raises(LabError, match="unknown keys found during decoding"):
        nodes.lab.edit(node=nodes.key("w1"), patch={"machine": {"nope": 1}})


def test_an_edit_that_needs_a_reboot_reboots_a_node_of_the_older_version(nodes: Nodes) -> None:
    boots = nodes.state("w1")["boots"]
    said = nodes.lab.edit(node=nodes.key("w1"), patch={"machine": {"env": {"A": "b"}}})
    if nodes.version.startswith("v1.13"):
        assert said.startswith("Applied configuration with a reboot: ")
        until(lambda: nodes.state("w1")["boots"] == boots + 1, "w1 reboots")
        nodes.wait("w1", "ready")
    assert stored(nodes, "w1")[0]["machine"]["env"] == {"A": "b"}


def test_upgrade_k8s_changes_the_tags_and_nothing_else(nodes: Nodes) -> None:
    names = {name: nodes.key(name) for name in ("cp1", "w1")}
    nodes.lab.edit(node=names["cp1"], patch={"machine": {"kubelet": {"image": "registry.example.org:5000/kubelet:v1.35.4"}}})
    nodes.lab.upgrade_k8s(to="1.36.3", nodes=list(names.values()))
    plane, worker = stored(nodes, "cp1")[0], stored(nodes, "w1")[0]
    assert plane["machine"]["kubelet"] == {"image": "registry.example.org:5000/kubelet:v1.36.3"}
    if nodes.version.startswith("v1.13"):
        assert {key: value["image"].rpartition(":")[2] for key, value in plane["cluster"].items() if isinstance(value, dict) and "image" in value} == {
            "apiServer": "v1.36.3", "controllerManager": "v1.36.3", "scheduler": "v1.36.3", "proxy": "v1.36.3"}
        assert worker["machine"]["kubelet"]["image"].endswith(":v1.36.3") and "apiServer" not in worker["cluster"]


def test_a_partition_that_is_there_without_its_file_system(nodes: Nodes) -> None:
    key = nodes.key("w1")
    for leave, seen in (("empty", ""), ("luks", "luks")):
        nodes.lab.wipe(node=key, what="STATE", leave=leave)
        nodes.wait("w1", "maintenance")
        assert volumes(nodes, "w1")["STATE"] == seen
    assert nodes.apply("w1", nodes.config("worker", "w1")).code == "OK"
    nodes.wait("w1", "ready")
    with pytest.raises(LabError, match="what is disk"):
        nodes.lab.wipe(node=key, what="state")


def test_a_lost_route_leaves_the_node_alone(nodes: Nodes) -> None:
    key, boots = nodes.key("cp1"), nodes.state("cp1")["boots"]
    nodes.lab.route(node=key, there=False)
    with pytest.raises(WireError):
        WireClient(nodes.addresses["cp1"], PORT, context(), seconds=0.3)
    assert nodes.state("cp1")["etcd"][0]["alive"] and nodes.state("cp1")["boots"] == boots
    nodes.lab.route(node=key, there=True)
    assert nodes.call("cp1", "Version", role=ADMIN).code == "OK"


@pytest.mark.parametrize("what", ["power", "route"])
def test_a_node_that_flaps(nodes: Nodes, what: str) -> None:
    key, mark = nodes.key("w1"), nodes.lab.mark()
    nodes.lab.flap(node=key, what=what, away=2.0, there=4.0)
    until(lambda: len(nodes.lab.log(since=mark, event="node", what="flap")) >= 4, "w1 has come and gone twice", 10)
    nodes.lab.flap(node=key, stop=True)
    nodes.wait("w1", "ready")
    assert nodes.call("w1", "Version", role=ADMIN).code == "OK"


def test_a_clock_that_jumps_keeps_the_leaf_or_changes_it(nodes: Nodes) -> None:
    key, leaf = nodes.key("w1"), nodes.state("w1")["fingerprint"]
    nodes.lab.clock(node=key, offset=7200.0, reissue=False)
    assert nodes.state("w1")["fingerprint"] == leaf
    outcome = nodes.call("w1", "Version", role=ADMIN)
    assert outcome.code == "OK"
    nodes.lab.clock(node=key, offset=0.0)
    assert nodes.state("w1")["fingerprint"] != leaf


class TestTrust:
    """A worker has no certificate before a control plane's trustd gives it one."""

    @pytest.fixture
    def nodes(self) -> Iterator[Nodes]:
        with Lab.start(speed=40) as lab:
            yield Nodes(lab)

    def test_no_api_before_trustd_answers_nor_with_another_token(self, nodes: Nodes) -> None:
        nodes.control_plane("cp1")
        nodes.lab.power(node=nodes.key("cp1"), state="off")
        nodes.add("w1")
        assert nodes.apply("w1", nodes.config("worker", "w1")).code == "OK"
        until(lambda: nodes.state("w1")["boots"] == 2, "w1 reboots after its install")
        text = nodes.config("worker", "w2").replace(nodes.secrets.token, "aaaaaa.bbbbbbbbbbbbbbbb")
        nodes.add("w2")
        assert nodes.apply("w2", text).code == "OK"
        assert nodes.state("w1")["mode"] == "closed"
        nodes.lab.power(node=nodes.key("cp1"), state="on")
        nodes.wait("w1", "ready")
        assert nodes.state("w2")["mode"] == "closed"


def test_a_graceful_reset_without_a_quorum_waits_three_minutes_and_fails() -> None:
    with Lab.start(speed=150) as lab:
        nodes = Nodes(lab)
        nodes.control_plane("cp1")
        nodes.join("cp2", "controlplane")
        lab.power(node=nodes.key("cp2"), state="off")
        until(lambda: "etcd not healthy" in str(nodes.state("cp1")["unmet"]), "cp1 misses its quorum")
        boots, start = nodes.state("cp1")["boots"], time.monotonic()
        assert nodes.call("cp1", "Reset", message("machine.ResetRequest")(graceful=True, reboot=True), ADMIN).code == "OK"
        until(lambda: nodes.state("cp1")["boots"] > boots, "cp1 reboots")
        assert time.monotonic() - start >= 180 / 150
        assert nodes.state("cp1")["has_config"] and nodes.state("cp1")["etcd"]


def test_a_control_plane_that_takes_a_living_ones_name_evicts_its_member() -> None:
    """Talos does not ask whether the member of its name lives."""
    with Lab.start(speed=40) as lab:
        nodes = Nodes(lab)
        nodes.control_plane("cp1")
        nodes.join("cp2", "controlplane")
        victim = next(member["id"] for member in nodes.state("cp1")["etcd"] if member["name"] == "cp2")
        nodes.add("cp3")
        assert nodes.apply("cp3", nodes.config("controlplane", "cp2")).code == "OK"
        until(lambda: victim not in [member["id"] for member in nodes.state("cp1")["etcd"]], "cp2's member is evicted")
        until(lambda: "etcd not running" in str(nodes.state("cp2")["unmet"]), "cp2 has no etcd any more")
