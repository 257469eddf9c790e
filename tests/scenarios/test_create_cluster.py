# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller through ansible-playbook: from approved machines to machines that run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.scenarios.playing import Project, lab_of, machine, network_of
from tests.scenarios.sending import approved

NETWORK = network_of(__name__)
NODES = {"cp": machine(1, NETWORK, "5a1f0c3e"), "worker": machine(2, NETWORK, "7be2944d")}
CONTROL_PLANE, WORKER = "prod-5a1f0c3e", "prod-7be2944d"


@pytest.fixture
def lab() -> Iterator[Lab]:
    yield from lab_of(NODES)


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("create") / "project")


def controller(**options: Any) -> dict[str, Any]:
    return {"name": "Reconcile", "ichor.talos.talos_controller": {"cluster": "prod", "until": "settled", "max_runtime": 60, **options}}


def test_the_controller_provisions_and_follows(lab: Lab, project: Project) -> None:
    approved(project, NETWORK, ((CONTROL_PLANE, "controlplane"), (WORKER, "worker")))
    run = project.play("reconcile", [controller(), {"name": "Bootstrap", "ichor.talos.talos_bootstrap": {"machine": CONTROL_PLANE}},
                                     {**controller(), "name": "Again"}])
    print(run.output)
    assert run["Reconcile"]["changed"] is True
    assert {row["name"]: row["reason"] for row in run["Again"]["machines"]} == {CONTROL_PLANE: "Converged", WORKER: "Converged"}
