# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Weak identities, twins, moves, rotated certificates and lost status, through ansible-playbook (design sections 4 to 7)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.lives.records import Records
from tests.scenarios.playing import Project, a_project, lab_of, machine, network_of, writes
from tests.scenarios.sending import cluster

NETWORK = network_of(__name__)
HEADS = {"first": "5a1f0c3e", "second": "7be2944d", "twinned": "c09d61aa", "mover": "d1e2f3a4", "redirected": "e0ddba11", "loser": "f00dcafe",
         "goner": "0badc0de", "vanished": "1dea11ed"}
NAMES = {node: f"prod-{head}" for node, head in HEADS.items()}
WEAK = f"{NETWORK}.9"
BOARD = {**machine(9, NETWORK, "03000200")["machine"], "uuid": "03000200-0400-0500-0006-000700080009"}
NODES = {node: machine(number, NETWORK, head) for number, (node, head) in enumerate(HEADS.items(), 1)}
DISCOVER = {"name": "Discover", "ichor.talos.talos_discover": {"cluster": "prod"}}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    yield from lab_of({**NODES, "weak": {"address": WEAK, "machine": BOARD}})


@pytest.fixture(scope="module")
def project(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A store with what the first discovery found; each test has a machine of its own in it."""
    with a_project(tmp_path_factory.mktemp("trust") / "project") as project:
        project.play("begin", [cluster(NETWORK, discovery={"ranges": [f"{NETWORK}.1-{NETWORK}.20"]}), DISCOVER])
        yield project


@pytest.fixture(scope="module")
def records(project: Project) -> Records:
    return project.records


def spec(records: Records, name: str) -> dict[str, Any]:
    """What people wrote of a machine."""
    return dict((records.record("machines", name) or {})["spec"])


def weak_ones(records: Records) -> list[str]:
    return [name for name in records.names("machines") if name.startswith("weak-")]


def approve(task: str, name: str, **more: Any) -> dict[str, Any]:
    options = {"machine": name, "role": "worker", "install": {"disk": "/dev/sda"}, **more}
    return {"name": task, "ichor.talos.talos_machine_approval": options, "ignore_errors": True}


def edit(task: str, name: str, **more: Any) -> dict[str, Any]:
    return {"name": task, "ichor.talos.talos_machine": {"machine": name, **more}, "ignore_errors": True}


def look(task: str, *addresses: str) -> dict[str, Any]:
    return {"name": task, "ichor.talos.talos_discover": {"cluster": "prod", "addresses": list(addresses)}}


def info(task: str, name: str) -> dict[str, Any]:
    return {"name": task, "ichor.talos.talos_machine_info": {"machine": name}}


def test_a_weak_identity_is_resolved_by_a_person_and_accepted_by_name(project: Project, records: Records) -> None:
    (name,) = weak_ones(records)
    run = project.play("weak", [
        approve("Unresolved", name, accept_weak_identity=True), edit("Resolve", name, identity={"serial": BOARD["serial"]}),
        approve("Unaccepted", name), approve("Accepted", name, accept_weak_identity=True), look("Look", WEAK)])
    assert (run["Unresolved"]["reason"], run["Unaccepted"]["reason"]) == ("WeakIdentityUnresolved", "WeakIdentity")
    assert run["Accepted"]["changed"] is True and spec(records, name)["approvalState"] == "approved"
    assert run["Look"]["changed"] is False and weak_ones(records) == [name]


def test_certificates_that_rotated_after_the_approval_are_trusted_in_one_action(lab: Lab, project: Project, records: Records) -> None:
    pair = [NAMES["first"], NAMES["second"]]
    project.play("approve", [{"name": "Approve", "ichor.talos.talos_machine_approval": {"machines": pair, "role": "worker", "install": {"disk": "/dev/sda"}}}])
    for node in ("first", "second"):
        lab.reissue(node=node)
    chosen = f"[?contains(`{json.dumps(pair)}`, metadata.name) && spec.approvalState=='approved'].metadata.name"
    trust = {"name": "Trust", "ichor.talos.talos_machine": {"select": chosen, "trust": True}}
    planned = project.play("plan", [trust], "--check")
    run = project.play("trust", [trust, {**trust, "name": "Again"}])
    assert planned["Trust"]["plan_id"] == run["Trust"]["plan_id"]
    assert [step["target"] for step in run["Trust"]["plan"]] == sorted(pair) and run["Again"]["changed"] is False
    for node in ("first", "second"):
        assert spec(records, NAMES[node])["acceptedFingerprint"] == lab.state(node=node)["fingerprint"]


def test_one_identity_with_two_certificates_at_once_is_recorded_nowhere_and_not_approved(lab: Lab, project: Project, records: Records) -> None:
    name, own, other = NAMES["twinned"], NODES["twinned"]["address"], f"{NETWORK}.13"
    lab.add(name="twin", description={**NODES["twinned"], "address": other})
    before = spec(records, name)
    run = project.play("twin", [look("Look", own, other), approve("Refused", name)])
    assert run["Look"]["changed"] is False and {found["rule"] for found in run["Look"]["found"]} == {"6/twin"}
    assert run["Refused"]["reason"] == "TwinIdentity" and spec(records, name) == before
    lab.remove(node="twin")
    assert project.play("cleared", [DISCOVER, approve("Approved", name)])["Approved"]["changed"] is True


def test_a_machine_that_moved_is_followed_and_its_new_certificate_has_to_be_named(lab: Lab, project: Project, records: Records) -> None:
    name, home, away = NAMES["mover"], NODES["mover"]["address"], f"{NETWORK}.14"
    project.play("approve", [approve("Approve", name)])
    lab.move(node="mover", address=away)
    fingerprint = lab.state(node="mover")["fingerprint"]
    run = project.play("moved", [look("Look", away), edit("Unnamed", name, trust=True), edit("Named", name, trust=True, fingerprint=fingerprint)])
    assert [(move["what"], move["after"]) for move in run["Look"]["transitions"]] == [("observedEndpoint", f"{away}:50000")]
    assert run["Unnamed"]["reason"] == "FingerprintMismatch" and f"fingerprint: {fingerprint}" in run["Unnamed"]["msg"]
    assert (spec(records, name)["acceptedFingerprint"], spec(records, name)["endpoint"]) == (fingerprint, home)


def test_a_redirected_pending_machine_is_held_against_the_node_at_its_own_address(lab: Lab, project: Project) -> None:
    name, home, away = NAMES["redirected"], NODES["redirected"]["address"], f"{NETWORK}.15"
    lab.power(node="redirected", state="off")
    lab.add(name="impostor", description={**NODES["redirected"], "address": away})
    told = project.play("redirected", [look("Look", away), approve("Approve", name)], "--check")
    assert f"at {away}:50000 and not at its spec.endpoint {home}" in " ".join(told.output.split())
    project.play("found", [look("Look", away)])
    lab.power(node="redirected", state="on")
    lab.wait(node="redirected", stage="maintenance")
    assert project.play("refused", [approve("Refused", name)])["Refused"]["reason"] == "TwinIdentity"


def test_lost_status_of_an_approved_machine_is_no_licence_until_a_person_trusts_it(project: Project, records: Records) -> None:
    name = NAMES["loser"]
    project.play("approve", [approve("Approve", name)])
    records.lose_status("machines", name)
    run = project.play("lost", [approve("Refused", name, hostname="w-1"), info("Lost", name), edit("Trust", name, trust=True), info("Found", name)])
    assert run["Refused"]["reason"] == "StatusMissing"
    assert "trust: true" in run["Lost"]["records"][0]["doing"]["advice"] and "status was lost" in run["Lost"]["records"][0]["doing"]["what"]
    assert "status was lost" not in run["Found"]["records"][0]["doing"]["what"]


def test_a_record_is_deleted_only_when_that_is_meant_and_is_found_again_with_nothing_inherited(lab: Lab, project: Project, records: Records) -> None:
    name, gone = NAMES["goner"], {"state": "absent", "allow_delete": True}
    run = project.play("deleted", [edit("Unmeant", name, state="absent"), approve("Approve", name), edit("Deleted", name, **gone),
                                   edit("Twice", name, **gone), look("Look", NODES["goner"]["address"])])
    assert run["Unmeant"]["reason"] == "DeleteNotAllowed"
    assert (run["Deleted"]["deleted"], run["Twice"]["changed"]) == ([name], False)
    assert [(step["action"], step["target"]) for step in run["Look"]["plan"]] == [("CreateMachine", name)]
    assert spec(records, name)["approvalState"] == "pending" and "acceptedFingerprint" not in spec(records, name)
    assert writes(lab) == []


def test_a_record_that_was_deleted_in_git_is_found_again_with_nothing_inherited(lab: Lab, project: Project, records: Records) -> None:
    """An order of a person that git took back: the machine is the same, and what was known of it counts for nothing."""
    name, address = NAMES["vanished"], NODES["vanished"]["address"]
    project.play("approve", [approve("Approve", name)])
    known = {"stage": "running", "configStoredAt": "2026-01-01T00:00:00Z", "storedConfigHash": "a" * 64, "appliedConfigHash": "a" * 64}
    records.change_status("machines", name, lambda status: {**status, **known})
    records.remove("machines", name)
    lab.reissue(node="vanished")
    run = project.play("vanished", [look("Look", address), info("Info", name)])
    assert [(step["action"], step["target"]) for step in run["Look"]["plan"]] == [("CreateMachine", name)]
    # An API server deletes the status with the record, so nothing of it is left to be told.
    assert ("deleted or renamed by hand" in " ".join(run.output.split())) is records.is_of_files
    assert spec(records, name)["approvalState"] == "pending" and "acceptedFingerprint" not in spec(records, name)
    status = records.status("machines", name)
    assert status["maintenanceFingerprint"] == lab.state(node="vanished")["fingerprint"]
    assert not {"configStoredAt", "storedConfigHash", "appliedConfigHash"} & status.keys()
