# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A folder's records move to a real API server and back by the playbook, and runs on what was left are refused."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from tests.parts.apiserver import ApiServer
from tests.scenarios.playing import Project, network_of, tree_hash
from tests.scenarios.sending import cluster

TASK = "Move the records"
DESCRIBE = [cluster(network_of(__name__)), {"name": "Keys", "ichor.talos.talos_secrets": {"cluster": "prod"}}]


def test_the_playbook_moves_records_there_and_back(tmp_path: Path, apiserver: ApiServer) -> None:
    project = Project(tmp_path / "project")
    namespace = f"t-{uuid.uuid4().hex[:12]}"
    there = {"ichor_from": "directory", "ichor_store_path": str(project.store), "ichor_to": "kubernetes", "ichor_to_kubeconfig": str(apiserver.kubeconfig),
             "ichor_to_namespace": namespace}
    back = {"ichor_from": "kubernetes", "ichor_kubeconfig": str(apiserver.kubeconfig), "ichor_namespace": namespace, "ichor_to": "directory",
            "ichor_to_path": str(project.store)}

    def move(ends: dict[str, str], *arguments: str) -> dict[str, object]:
        return project.run("ichor.talos.store_copy", "--extra-vars", json.dumps(ends), *arguments)[TASK]

    project.play("describe", DESCRIBE)
    before = tree_hash(project.store)
    checked = move(there, "--check")
    assert checked["changed"] and tree_hash(project.store) == before
    moved = move(there)
    assert moved["plan_id"] == checked["plan_id"] and moved["records"] == ["TalosCluster/prod"]
    assert not move(there)["changed"]

    edit = [cluster(network_of(__name__), allow_scheduling_on_control_planes=True)]
    assert project.play("edit", edit, rc=2)["The cluster"]["reason"] == "StoreMoved"
    project.environment.update(ICHOR_STORE="kubernetes", ICHOR_STORE_KUBECONFIG=str(apiserver.kubeconfig), ICHOR_STORE_NAMESPACE=namespace)
    assert project.play("edit", edit)["The cluster"]["changed"]
    project.environment.clear()

    assert move(back)["changed"]
    assert not project.play("edit", edit)["The cluster"]["changed"]
