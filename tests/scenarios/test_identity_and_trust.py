# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Weak identities, twins, moves, rotated certificates and lost status, through ansible-playbook (design sections 4 to 7)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.control import Lab
from tests.scenarios.playing import Project, lab_of, machine, network_of, tree_hash, writes
from tests.scenarios.sending import cluster

NETWORK = network_of(__name__)
ONE, TWO = "prod-5a1f0c3e", "prod-7be2944d"
FIRST, SECOND = machine(1, NETWORK, "5a1f0c3e"), machine(2, NETWORK, "7be2944d")
BOARD = {**machine(3, NETWORK, "03000200")["machine"], "uuid": "03000200-0400-0500-0006-000700080009"}
NODES = {"one": FIRST, "two": SECOND, "weak": {"address": f"{NETWORK}.3", "machine": BOARD}}
DISCOVER = {"name": "Discover", "ichor.talos.talos_discover": {"cluster": "prod"}}


@pytest.fixture
def lab() -> Iterator[Lab]:
    yield from lab_of(NODES)


@pytest.fixture
def project(lab: Lab, tmp_path: Path) -> Project:
    """A store with a cluster and what the first discovery found."""
    project = Project(tmp_path / "project")
    project.play("begin", [cluster(NETWORK), DISCOVER])
    return project


def spec(project: Project, name: str) -> dict[str, Any]:
    return yaml.safe_load((project.store / "machines" / f"{name}.yaml").read_text(encoding="utf-8"))["spec"]


def weak_name(project: Project) -> str:
    (path,) = (project.store / "machines").glob("weak-*.yaml")
    return path.stem


def approve(name: str, **more: Any) -> dict[str, Any]:
    return {"name": "Approve", "ichor.talos.talos_machine_approval": {"machine": name, "role": "worker", "install": {"disk": "/dev/sda"}, **more}}


def edit(name: str, **more: Any) -> dict[str, Any]:
    return {"name": "Edit", "ichor.talos.talos_machine": {"machine": name, **more}}


def test_a_weak_identity_is_resolved_by_a_person_and_accepted_by_name(lab: Lab, project: Project) -> None:
    name = weak_name(project)
    unresolved = project.play("unresolved", [approve(name, accept_weak_identity=True)], rc=2)
    assert unresolved["Approve"]["reason"] == "WeakIdentityUnresolved"
    unaccepted = project.play("unaccepted", [edit(name, identity={"serial": BOARD["serial"]}), approve(name)], rc=2)
    assert unaccepted["Approve"]["reason"] == "WeakIdentity"
    accepted = project.play("accepted", [approve(name, accept_weak_identity=True), DISCOVER])
    assert spec(project, name)["approvalState"] == "approved" and accepted["Approve"]["changed"] is True
    assert accepted["Discover"]["changed"] is False and weak_name(project) == name
    assert writes(lab) == []


def test_certificates_that_rotated_after_the_approval_are_trusted_in_one_action(lab: Lab, project: Project) -> None:
    project.play("approve", [approve(ONE), approve(TWO)])
    for node in ("one", "two"):
        lab.reissue(node=node)
    trust = {"name": "Trust", "ichor.talos.talos_machine": {"select": "[?spec.approvalState=='approved'].metadata.name", "trust": True}}
    planned = project.play("plan", [trust], "--check")
    run = project.play("trust", [trust])
    assert run.steps == planned.steps == [("TrustMachine", ONE), ("TrustMachine", TWO)]
    assert run["Trust"]["plan_id"] == planned["Trust"]["plan_id"]
    for name, node in ((ONE, "one"), (TWO, "two")):
        assert spec(project, name)["acceptedFingerprint"] == lab.state(node=node)["fingerprint"]
    assert project.play("again", [trust])["Trust"]["changed"] is False


def test_one_identity_with_two_certificates_at_once_is_recorded_nowhere_and_not_approved(lab: Lab, project: Project) -> None:
    lab.add(name="twin", description={**FIRST, "address": f"{NETWORK}.7"})
    before = tree_hash(project.store / "machines")
    seen = project.play("twin", [DISCOVER])
    assert seen["Discover"]["changed"] is False and tree_hash(project.store / "machines") == before
    assert any(found["rule"] == "6/twin" for found in seen["Discover"]["found"])
    assert project.play("refused", [approve(ONE)], rc=2)["Approve"]["reason"] == "TwinIdentity"
    lab.remove(node="twin")
    cleared = project.play("cleared", [DISCOVER, approve(ONE)])
    assert cleared["Approve"]["changed"] is True


def test_a_machine_that_moved_is_followed_and_its_new_certificate_has_to_be_named(lab: Lab, project: Project) -> None:
    project.play("approve", [approve(ONE)])
    lab.move(node="one", address=f"{NETWORK}.8")
    moved = project.play("moved", [DISCOVER, edit(ONE, trust=True)], rc=2)
    assert [(move["what"], move["after"]) for move in moved["Discover"]["transitions"]] == [("observedEndpoint", f"{NETWORK}.8:50000")]
    assert moved["Edit"]["reason"] == "FingerprintMismatch"
    fingerprint = lab.state(node="one")["fingerprint"]
    assert f"fingerprint: {fingerprint}" in moved["Edit"]["msg"]
    project.play("named", [edit(ONE, trust=True, fingerprint=fingerprint)])
    assert spec(project, ONE)["acceptedFingerprint"] == fingerprint and spec(project, ONE)["endpoint"] == f"{NETWORK}.1"


def test_a_redirected_pending_machine_is_told_at_the_approval(lab: Lab, project: Project) -> None:
    lab.power(node="one", state="off")
    lab.add(name="impostor", description={**FIRST, "address": f"{NETWORK}.7"})
    told = project.play("redirected", [DISCOVER, approve(ONE)], "--check")
    assert f"{NETWORK}.7:50000" in told.output and f"not at its spec.endpoint {NETWORK}.1" in " ".join(told.output.split())
    project.play("discover", [DISCOVER])
    lab.power(node="one", state="on")
    lab.wait(node="one", stage="maintenance")
    assert project.play("refused", [approve(ONE)], rc=2)["Approve"]["reason"] == "TwinIdentity"


def test_lost_status_of_an_approved_machine_is_no_licence_until_a_person_trusts_it(lab: Lab, project: Project) -> None:
    project.play("approve", [approve(ONE)])
    (state,) = (project.store / ".state" / "machines").glob(f"{ONE}*")
    state.unlink()
    info = {"name": "Info", "ichor.talos.talos_machine_info": {"machine": ONE}}
    lost = project.play("lost", [approve(ONE, hostname="w-1"), info], rc=2)
    assert lost["Approve"]["reason"] == "StatusMissing"
    shown = project.play("shown", [info])["Info"]["records"][0]
    assert "status was lost" in shown["doing"]["what"] and "trust: true" in shown["doing"]["advice"]
    project.play("trust", [edit(ONE, trust=True)])
    assert "status was lost" not in project.play("after", [info])["Info"]["records"][0]["doing"]["what"]


def test_a_record_is_deleted_only_when_that_is_meant_and_is_found_again_with_nothing_inherited(lab: Lab, project: Project) -> None:
    assert project.play("unmeant", [edit(ONE, state="absent")], rc=2)["Edit"]["reason"] == "DeleteNotAllowed"
    project.play("approve", [approve(ONE)])
    project.play("deleted", [edit(ONE, state="absent", allow_delete=True)])
    assert not (project.store / "machines" / f"{ONE}.yaml").exists()
    again = project.play("again", [edit(ONE, state="absent", allow_delete=True), DISCOVER])
    assert again["Edit"]["changed"] is False and again.steps == [("CreateMachine", ONE)]
    assert spec(project, ONE)["approvalState"] == "pending" and "acceptedFingerprint" not in spec(project, ONE)
    assert writes(lab) == []
