# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where an option comes from: the task, else module_defaults of the action group, else the environment, else what is beside the playbook (section 20)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.playing import Project, Run

STORES = ("option", "defaults", "environment", "ichor")
CLUSTERS = "ichor.talos.talos_cluster_info"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one store for each place that could name it, each with a cluster of that name."""
    project = Project(tmp_path_factory.mktemp("precedence") / "project", defaults={})
    project.play("made", [{"name": f"Make {name}", "ichor.talos.talos_cluster": {
        "name": name, "endpoint": "https://192.0.2.10:6443", "talos_version": "v1.13.9", "store_path": name}} for name in STORES])
    return project.folder


def names(run: Run, task: str) -> list[str]:
    return [entry["metadata"]["name"] for entry in run[task]["clusters"]]


def look(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, CLUSTERS: options}


def test_of_a_path(folder: Path) -> None:
    environment = {"ICHOR_STORE_PATH": str(folder / "environment")}
    all_three = Project(folder, defaults={"store_path": "defaults"}, environment=environment)
    run = all_three.play("three", [look("The option", store_path="option"), look("The defaults")])
    assert (names(run, "The option"), names(run, "The defaults")) == (["option"], ["defaults"])
    assert names(Project(folder, defaults={}, environment=environment).play("two", [look("The environment")]), "The environment") == ["environment"]
    assert names(Project(folder, defaults={}).play("none", [look("Beside the playbook")]), "Beside the playbook") == ["ichor"]


def test_of_a_name(folder: Path) -> None:
    project = Project(folder, defaults={}, environment={"ICHOR_CLUSTER": "nowhere"})
    run = project.play("names", [look("The option", cluster="ichor"), {**look("The environment"), "ignore_errors": True}])
    assert names(run, "The option") == ["ichor"]
    assert run["The environment"]["reason"] == "RecordNotFound" and "nowhere" in run["The environment"]["msg"]


def test_of_credentials(folder: Path) -> None:
    def stage(name: str, **options: Any) -> dict[str, Any]:
        return {"name": name, "ignore_errors": True, "ichor.talos.talos_stage": {"address": "192.0.2.1", "store": "none", "timing": {"call": 0.2}, **options}}

    environment = {"TALOSCONFIG": "/nonexistent/environment"}
    run = Project(folder, defaults={}, environment=environment).play("two", [stage("option", talosconfig="/nonexistent/option"), stage("environment")])
    for origin in ("option", "environment"):
        assert f"/nonexistent/{origin}" in run[origin]["msg"]
    run = Project(folder, defaults={"talosconfig": "/nonexistent/defaults"}, environment=environment).play("defaults", [stage("defaults")])
    assert "/nonexistent/defaults" in run["defaults"]["msg"]
