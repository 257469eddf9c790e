# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines that carry a managed cluster's CAs are added, and what is not to be added is refused with nothing written (design section 15)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.lab.configs import ClusterSecrets
from tests.lab.control import Lab
from tests.lives.records import chosen
from tests.nursery.client import Nursery
from tests.scenarios.adopting import Running, configuration, named
from tests.scenarios.playing import Project, machine, network_of

ROTATING = "machine:\n  acceptedCAs:\n    - crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K\n"
OTHER_ID = "cluster:\n  id: VGhpcyBpcyBhbm90aGVyIGNsdXN0ZXI=\n"
LOGIN = "apiVersion: v1alpha1\nkind: RegistryAuthConfig\nname: registry.example.org\npassword: s3cr3t-of-the-registry\n"
CONFIGS = {
    "cp-1": configuration("1.13", "controlplane", named("cp-1")), "w-1": configuration("1.13", "worker", named("w-1")),
    "w-2": configuration("1.13", "worker", named("w-2"), "machine:\n  sysctls:\n    vm.swappiness: 1\n"),
    "cp-2": configuration("1.13", "controlplane", named("cp-2")),
    "w-other-id": configuration("1.13", "worker", named("w-other-id"), OTHER_ID),
    "w-rotating": configuration("1.13", "worker", named("w-rotating"), ROTATING),
    "w-login": configuration("1.13", "worker", named("w-login"), LOGIN),
}


def beside(running: Running) -> None:
    """A control plane of somebody else's cluster, and that cluster's talosconfig."""
    other = ClusterSecrets("other")
    text = other.config("controlplane", "cp-other", version="v1.13.9")
    running.lab.add(name="cp-other", description=machine(99, running.network, "7c3f2e5e", version="v1.13.9", installed=text))
    running.addresses["cp-other"] = f"{running.network}.99"
    (running.folder / "other.talosconfig").write_text(other.talosconfig(list(running.addresses.values())), encoding="utf-8")
    running.lab.wait(node="cp-other", stage="booting")


@pytest.fixture(scope="module")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Nursery]]:
    """A cluster of one control plane and one worker that is adopted, and nodes around it that are not."""
    folder = tmp_path_factory.mktemp("adding") / "project"
    with Lab.start({"nodes": {}}, speed=20) as lab, chosen(folder / "ichor") as records:
        running = Running(lab, folder, network_of(__name__), CONFIGS, kept_in=records).start()
        nursery = Nursery()
        try:
            ended = nursery.run("talos_adopt", **running.options("cp-1", "w-1", consent_class_b=True, control_planes=1))
            assert ended.result.get("changed"), ended
            beside(running)
            yield running, nursery
        finally:
            nursery.close()


def add(managed: tuple[Running, Nursery], *names: str, **more: Any) -> dict[str, Any]:
    running, nursery = managed
    return nursery.run("talos_adopt", **running.options(*names, add_machine=True, **{"consent_class_b": True, **more})).result


def record(running: Running, name: str, state: str) -> None:
    """The record of w-2 under a name, as discovery or a person left it."""
    running.records.put("machines", yaml.safe_load(
        f"apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata:\n  name: {name}\nspec:\n  clusterRef: prod\n"
        f"  identity:\n    uuid: 5a1f0c03-51c8-4f0e-8d39-3cecef000003\n  endpoint: 192.0.2.3\n  approvalState: {state}\n"))


def variables(running: Running, name: str, **more: Any) -> str:
    """For the playbook."""
    return json.dumps({"ichor_cluster": "prod", "ichor_addresses": [running.addresses[name]], "ichor_talosconfig": str(running.path),
                       **running.records.variables, "ichor_allow_loopback": True, "ichor_consent_class_b": True, **more})


@dataclass(frozen=True)
class Refused:
    """`node`: who is to be added. `wrong`: with another cluster's talosconfig. `rejected`: its record says so."""

    node: str
    reason: str
    says: tuple[str, ...]
    wrong: bool = False
    rejected: bool = False


RECLAIM = "ansible-playbook ichor.talos.reclaim -e ichor_address="
REFUSED = {
    "a foreign node": Refused("w-other-id", "AuthorityMismatch", ("cluster c1 (id VGhpcyBpcyBhbm90aGVyIGNsdXN0ZXI=)", "nothing was written", RECLAIM)),
    "an unknown authority": Refused("cp-other", "UnknownAuthority", ("belongs to another cluster", "the talosconfig may be the wrong one", RECLAIM)),
    "a wrong talosconfig": Refused("w-2", "UnknownAuthority", ("belongs to another cluster", "the talosconfig may be the wrong one", RECLAIM), wrong=True),
    "a rotation of the CA": Refused("w-rotating", "CARotation", ("accepts CAs beside its own", "Finish the rotation first")),
    "a rejected machine": Refused("w-2", "Rejected", ("prod-rejected, which was rejected", "Delete that record"), rejected=True),
    "a control plane over the count": Refused("cp-2", "TooManyControlPlanes", ("2 control planes, and its count is 1", "Raise the count first")),
    "every machine blocked": Refused("w-login", "BlockedMachines", ("Every machine is blocked; nothing was written", "talosctl reset")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_writes_nothing(managed: tuple[Running, Nursery], name: str) -> None:
    """By the playbook, and in check mode as well."""
    running, nursery = managed
    case, mark, project = REFUSED[name], running.lab.mark(), Project(running.folder, kept_in=running.records)
    path = running.folder / ("other.talosconfig" if case.wrong else "talosconfig")
    if case.rejected:
        record(running, "prod-rejected", "rejected")
    try:
        before = running.records.everything()
        check = nursery.run("talos_adopt", check=True, **running.options(case.node, add_machine=True, consent_class_b=True, talosconfig=str(path))).result
        run = project.run("ichor.talos.add_machine", "-e", variables(running, case.node, ichor_talosconfig=str(path)), rc=2)
        assert check["failed"]
        for found in (check, run["Adopt"]):
            assert not found["changed"] and found["reason"] == case.reason, found
            assert all(text in found["msg"] for text in case.says), found["msg"]
        assert running.records.everything() == before and running.lab.writes(since=mark) == {}
    finally:
        if case.rejected:
            running.records.remove("machines", "prod-rejected")


def test_what_is_approved_is_reported_and_skipped(managed: tuple[Running, Nursery]) -> None:
    before = managed[0].records.written()
    found = add(managed, "w-1")
    assert not found["changed"] and not found.get("failed") and [one["state"] for one in found["adoption"]] == ["adopted"]
    assert managed[0].records.written() == before


def test_what_is_blocked_beside_what_is_approved_is_told_again_each_time(managed: tuple[Running, Nursery]) -> None:
    """Nothing is left to be adopted, so that a run again is no failure, and it says what is blocked."""
    running, mark = managed[0], managed[0].lab.mark()
    before = running.records.written()
    for dummy in range(2):
        found = add(managed, "w-1", "w-login")
        assert not found["changed"] and not found.get("failed") and f"Nothing to adopt: {running.record('w-login')} blocked" in found["msg"], found
        assert found["blocked"] == [running.record("w-login")]
    assert running.records.written() == before and running.lab.writes(since=mark) == {}


def test_a_worker_is_added(managed: tuple[Running, Nursery]) -> None:
    """Through the playbook: the pending record that discovery would have made is completed under its own name."""
    running = managed[0]
    record(running, "prod-found", "pending")
    mark = running.lab.mark()
    project = Project(running.folder, kept_in=running.records)
    options = variables(running, "w-2")
    check = project.run("ichor.talos.add_machine", "-e", options, "--check", "--diff")["Adopt"]
    run = project.run("ichor.talos.add_machine", "-e", options)["Adopt"]
    assert run["plan_id"] == check["plan_id"] and [step["action"] for step in run["plan"]] == ["AdoptPatch", "AdoptMachine", "ReleaseMachine"]
    assert [record["metadata"]["name"] for record in run["records"]] == ["prod-found-adopted", "prod-found"]
    assert running.status("prod-found")["appliedConfigHash"] and running.lab.writes(since=mark) == {}
    assert not add(managed, "w-2")["changed"]
