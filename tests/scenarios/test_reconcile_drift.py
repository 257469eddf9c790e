# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines of a running cluster that differ from their records, through the role: what is put back, and how, and what is left alone
(design sections 8, 9, 11, 12 and 13)."""

from __future__ import annotations

import datetime
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.authorities import make_bundle
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import encode, read_bundle

from tests.scenarios.playing import machine, wait_for
from tests.scenarios.running import CHECK, SEND, Kept, kept

# The tests share one cluster, and each mends what it broke; each can also run alone.
NEWER = "1.35.3"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    yield from kept(tmp_path_factory.mktemp("drift") / "project", __name__)


def sysctl(value: str) -> dict[str, Any]:
    return {"machine": {"sysctls": {"net.core.somaxconn": value}}}


def active(running: Kept, host: str) -> str:
    return str(running.lab.config(node=host, which="active"))


def put_patch(running: Kept, name: str, documents: list[dict[str, Any]], **selector: Any) -> None:
    """As a person with an editor: the check that a module makes of a patch is not asked."""
    record = {"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosConfigPatch", "metadata": {"name": name},
              "spec": {"clusterRef": "prod", "layer": "cluster", "machineSelector": selector, "documents": documents}}
    running.cluster.records.put("patches", record)


def mended(running: Kept) -> None:
    """What was wrong is put right: a run sends nothing, and all is well."""
    back = running.run()
    assert not back.steps and not back.tried, running.project.output()
    running.converged()


def test_drift_by_hand_is_put_back_with_a_reboot_where_talos_wants_one_and_newer_images_stay(running: Kept) -> None:
    boots = running.lab.state(node="w-2")["boots"]
    running.lab.edit(node="w-2", patch={"machine": {"udev": {"rules": ["by hand"]}}}, mode="reboot")
    wait_for(lambda: running.lab.state(node="w-2")["boots"] > boots, "the reboot by hand")
    running.lab.wait(node="w-2", stage="ready")
    running.lab.upgrade_k8s(to=NEWER, nodes=list(running.cluster.names))
    for host in ("cp-2", "w-1"):
        running.lab.edit(node=host, patch=sysctl("1"), mode="no-reboot")

    # Talos 1.13 takes udev rules only with a reboot: staged first.
    life = running.life(("ApplyDrift", "cp-2"), ("ApplyDrift", "w-1"), ("ApplyDrift", "w-2"), ("Reboot", "w-2"))
    w_1, w_2 = running.cluster.names["w-1"], running.cluster.names["w-2"]
    assert f"{w_1}: sending the configuration (NO_REBOOT)" in life.output and f"{w_2}: sending the configuration (STAGED)" in life.output
    assert "net.core.somaxconn" in str(life.check.result["diff"]) and "machine.udev.rules" in str(life.check.result["diff"])
    assert life.check.result["plan"][-1]["waits_for"][0] == "the configuration to be staged" and life.check.result["plan"][-1]["disruption"] == "reboot"
    for host in running.cluster.names:
        text = active(running, host)
        assert f"kubelet:v{NEWER}" in text and "somaxconn" not in text and "by hand" not in text
    assert f"kube-apiserver:v{NEWER}" in active(running, "cp-2") and "Newer Kubernetes images on the node stay" in life.run.row(w_2)["message"]
    running.converged()


def test_with_report_drift_is_shown_and_nothing_is_sent(running: Kept) -> None:
    running.edit_record("prod", "spec:\n", "spec:\n  driftPolicy: report\n", "clusters")
    running.lab.edit(node="w-1", patch=sysctl("1"), mode="no-reboot")
    name = running.cluster.names["w-1"]
    life = running.life()
    assert life.run.row(name)["reason"] == "Drifted" and "driftPolicy is report" in life.run.row(name)["message"]
    assert "net.core.somaxconn" in str(life.check.result["diff"]) and "net.core.somaxconn" in str(life.again[1].result["diff"])
    failed = running.play(CHECK, rc=2, fail_on=["drift"])[0].result
    assert failed["reason"] == "DriftFound" and name in failed["msg"]

    running.edit_record("prod", "  driftPolicy: report\n", "  driftPolicy: apply\n", "clusters")
    run = running.run()
    assert run.steps == running.named(("ApplyDrift", "w-1")) and run.calls == [("w-1", SEND)]
    running.converged()


def test_other_keys_and_copied_host_names_hold_what_they_concern(running: Kept) -> None:
    names = running.cluster.names
    own_ca, own_token = active(running, "cp-2"), active(running, "w-1")
    own = read_bundle(running.cluster.records.bundle()).os
    other = make_bundle(datetime.datetime.now(datetime.timezone.utc), os.urandom).os
    text = own_ca
    for old, new in ((own.crt, other.crt), (own.key, other.key)):
        assert encode(old) in text
        text = text.replace(encode(old), encode(new))
    running.lab.edit(node="cp-2", text=text, mode="no-reboot")
    running.lab.edit(node="w-1", patch={"cluster": {"token": "abcdef.0123456789abcdef"}, **sysctl("1")}, mode="no-reboot")
    running.edit_record(names["cp-3"], "hostname: cp-3", "hostname: cp-1")
    running.edit_record(names["w-2"], "  hostname: w-2\n", "")
    put_patch(running, "copied", [{"apiVersion": "v1alpha1", "kind": "HostnameConfig", "auto": "off", "hostname": "w-1"}], names=[names["w-2"]])

    life = running.life()
    wanted = {"cp-1": "Converged", "cp-2": "AuthorityMismatch", "cp-3": "HostnameConflict", "w-1": "AuthorityMismatch", "w-2": "HostnameConflict"}
    assert running.cluster.reasons() == wanted and life.run.result["blocked"] == sorted(names[host] for host in wanted if host != "cp-1")
    assert "its CA was rotated" in life.run.row(names["cp-2"])["message"] and "cluster.token" in life.run.row(names["w-1"])["message"]
    assert f"that of machine {names['cp-1']}" in life.run.row(names["cp-3"])["message"]
    assert f"that of machine {names['w-1']}" in life.run.row(names["w-2"])["message"]
    shown = life.output + str(life.check.result) + str(life.run.result)
    assert "abcdef.0123456789abcdef" not in shown and encode(other.key) not in shown

    running.lab.edit(node="cp-2", text=own_ca, mode="no-reboot")
    running.lab.edit(node="w-1", text=own_token, mode="no-reboot")
    running.edit_record(names["cp-3"], "hostname: cp-1", "hostname: cp-3")
    running.cluster.records.remove("patches", "copied")
    running.edit_record(names["w-2"], "  role: worker\n", "  role: worker\n  hostname: w-2\n")
    mended(running)


def test_a_flag_of_the_api_server_goes_from_one_control_plane_to_the_next_on_its_evidence(running: Kept) -> None:
    put_patch(running, "flags", [{"cluster": {"apiServer": {"extraArgs": {"v": "4"}}}}], role="controlplane")
    planes = ("cp-1", "cp-2", "cp-3")
    life = running.life(*(("ApplyDrift", host) for host in planes))
    assert [step["waits_for"] for step in life.check.result["plan"]] == [
        [], [f"{running.cluster.names['cp-1']} is Ready"], [f"{running.cluster.names['cp-2']} is Ready"]]
    sent = [entry for entry in running.lab.log(since=life.mark, event="done") if str(entry["rpc"]).endswith(f"/{SEND}")]
    assert [entry["node"] for entry in sent] == list(planes)
    running.gave_evidence(life.mark, SEND)
    assert all('v: "4"' in active(running, host) or "v: '4'" in active(running, host) for host in planes)
    running.converged()


def test_the_name_of_the_install_disk_that_moved_to_another_disk_holds_the_machine(running: Kept) -> None:
    name = running.cluster.names["w-1"]
    other = [{"name": "sda", "serial": "OTHER", "wwid": "naa.other"}, {"name": "sdb"}]
    running.lab.hardware(node="w-1", disks=other, volumes=[{"disk": "sda", "label": "data"}])
    running.cluster.wipe("w-1")
    life = running.life()
    assert life.run.row(name)["reason"] == "InstallDiskUnknown" and life.run.result["blocked"] == [name]
    running.lab.hardware(node="w-1", disks=[{"name": "sda"}], volumes=[])
    run = running.run()
    assert run.steps == running.named(("Reinstall", "w-1")) and run.calls == [("w-1", SEND)]
    running.converged()


def test_the_lease_that_a_new_machine_gives_up_for_its_static_address(running: Kept) -> None:
    cluster, lease, static = running.cluster, f"{running.cluster.network}.6", f"{running.cluster.network}.66"
    running.lab.add(name="w-3", description=machine(6, cluster.network, "af6a5b8e"))
    cluster.names["w-3"] = "prod-af6a5b8e"
    running.lab.wait(node="w-3", stage="maintenance")
    cluster.module("talos_discover", cluster="prod", addresses=[lease])
    cluster.module("talos_machine_approval", machine=cluster.names["w-3"], role="worker", hostname="w-3", install={"disk": "/dev/sda"}, network={
        "interface": "enp1s0", "addresses": [f"{static}/24"], "gateway": f"{cluster.network}.254", "nameservers": ["192.0.2.53"]})
    running.lab.hold(node="w-3", phase="install")

    def given_up() -> None:
        wait_for(lambda: SEND in running.lab.writes(since=mark, accepted_only=True), "the configuration to be sent")
        running.lab.move(node="w-3", address=static)
        running.lab.hold(node="w-3", phase="install", held=False)

    mark = running.lab.mark()
    mover = threading.Thread(target=given_up)
    mover.start()
    life = running.life(("ApplyConfig", "w-3"))
    mover.join()
    status = cluster.status("w-3")
    assert status["observedEndpoint"].startswith(static) and life.run.row(cluster.names["w-3"])["reason"] == "Converged"
    running.converged()
