# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines that carry a managed cluster's CAs are added, and what is not to be added is refused with nothing written (design section 15)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.configs import ClusterSecrets
from tests.lab.control import Lab
from tests.nursery.client import Nursery
from tests.scenarios.adopting import Running, configuration, named
from tests.scenarios.playing import Project, network_of

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


@pytest.fixture(scope="module")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Nursery]]:
    """A cluster of one control plane and one worker that is adopted, and nodes around it that are not."""
    with Lab.start({"nodes": {}}, speed=20) as lab:
        running = Running(lab, tmp_path_factory.mktemp("adding") / "project", network_of(__name__), CONFIGS).start()
        nursery = Nursery()
        try:
            ended = nursery.run("talos_adopt", **running.options("cp-1", "w-1", consent_class_b=True, control_planes=1))
            assert ended.result.get("changed"), ended
            yield running, nursery
        finally:
            nursery.close()


def add(managed: tuple[Running, Nursery], *names: str, **more: Any) -> dict[str, Any]:
    running, nursery = managed
    return nursery.run("talos_adopt", **running.options(*names, add_machine=True, **{"consent_class_b": True, **more})).result


def edit(running: Running, name: str, before: str, after: str) -> None:
    path = next((running.folder / "ichor").glob(f"*/{name}.yaml"))
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def stored(running: Running) -> dict[str, bytes]:
    return {name: text for name, text in running.files().items() if not name.startswith(".state")}


@pytest.mark.parametrize(("name", "reason", "says"), [
    ("w-other-id", "AuthorityMismatch", "ichor.talos.reclaim"), ("w-rotating", "CARotation", "Finish the rotation"),
    ("cp-2", "TooManyControlPlanes", "Raise the count first"), ("w-login", "BlockedMachines", "Every machine is blocked; nothing was written"),
])
def test_what_is_refused_writes_nothing(managed: tuple[Running, Nursery], name: str, reason: str, says: str) -> None:
    running = managed[0]
    before, mark = stored(running), running.lab.mark()
    for check in (True, False):
        found = managed[1].run("talos_adopt", check=check, **running.options(name, add_machine=True, consent_class_b=True)).result
        assert found["failed"] and found["reason"] == reason and says in str(found["refusals"]), found
        assert not found["changed"] and stored(running) == before and running.lab.writes(since=mark) == {}


def test_another_clusters_node_and_a_wrong_talosconfig_are_the_same_refusal(managed: tuple[Running, Nursery]) -> None:
    running = managed[0]
    before = stored(running)
    wrong = ClusterSecrets("other").talosconfig([running.addresses["w-2"]])
    found = managed[1].run("talos_adopt", **{**running.options("w-2", add_machine=True), "talosconfig": None, "talosconfig_content": wrong}).result
    assert found["failed"] and found["reason"] in ("UnknownAuthority", "ClientCertificateRequired", "PermissionDenied"), found
    assert found["reason"] != "UnknownAuthority" or "the talosconfig may be the wrong one" in found["msg"] and "ichor.talos.reclaim" in found["msg"]
    assert stored(running) == before


def test_what_is_approved_is_reported_and_skipped(managed: tuple[Running, Nursery]) -> None:
    before = stored(managed[0])
    found = add(managed, "w-1")
    assert not found["changed"] and not found.get("failed") and [one["state"] for one in found["adoption"]] == ["adopted"]
    assert stored(managed[0]) == before


def test_what_was_rejected_is_refused_by_name(managed: tuple[Running, Nursery]) -> None:
    running = managed[0]
    path = running.folder / "ichor" / "machines" / "prod-rejected.yaml"
    path.write_text("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata:\n  name: prod-rejected\nspec:\n  clusterRef: prod\n"
                    "  identity:\n    uuid: 5a1f0c03-51c8-4f0e-8d39-3cecef000003\n  endpoint: 192.0.2.3\n  approvalState: rejected\n", encoding="utf-8")
    before = stored(running)
    found = add(managed, "w-2")
    assert found["failed"] and found["reason"] == "Rejected" and "prod-rejected" in found["msg"] and stored(running) == before
    path.unlink()


def test_a_worker_is_added(managed: tuple[Running, Nursery]) -> None:
    """Through the playbook: the pending record that discovery would have made is completed under its own name."""
    running = managed[0]
    path = running.folder / "ichor" / "machines" / "prod-found.yaml"
    path.write_text("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata:\n  name: prod-found\nspec:\n  clusterRef: prod\n"
                    "  identity:\n    uuid: 5a1f0c03-51c8-4f0e-8d39-3cecef000003\n  endpoint: 192.0.2.3\n  approvalState: pending\n", encoding="utf-8")
    mark = running.lab.mark()
    project = Project(running.folder)
    options = json.dumps({"ichor_cluster": "prod", "ichor_addresses": [running.addresses["w-2"]], "ichor_talosconfig": str(running.path),
                          "ichor_store_path": str(project.store), "ichor_allow_loopback": True, "ichor_consent_class_b": True})
    check = project.run("ichor.talos.add_machine", "-e", options, "--check", "--diff")["Adopt"]
    run = project.run("ichor.talos.add_machine", "-e", options)["Adopt"]
    assert run["plan_id"] == check["plan_id"] and [step["action"] for step in run["plan"]] == ["AdoptPatch", "AdoptMachine", "ReleaseMachine"]
    assert [record["metadata"]["name"] for record in run["records"]] == ["prod-found-adopted", "prod-found"]
    assert running.status("prod-found")["appliedConfigHash"] and running.lab.writes(since=mark) == {}
    assert not add(managed, "w-2")["changed"]
