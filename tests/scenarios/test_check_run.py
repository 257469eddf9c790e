# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would-be records of a check run never reach a task that acts, and `async` is refused with one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.control import Lab
from tests.lives.records import Records
from tests.scenarios.playing import Project, lab_of, machine, network_of
from tests.scenarios.sending import MACHINE, cluster

NETWORK = network_of(__name__)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    yield from lab_of({"cp": machine(1, NETWORK, "5a1f0c3e")})


@pytest.fixture
def project(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("check") / "project"
    return Project(folder, environment={"ANSIBLE_CACHE_PLUGIN": "jsonfile"}, kept_in=records.another(folder / "ichor"))


DISCOVER = {"name": "Discover", "ichor.talos.talos_discover": {"cluster": "prod"}}
INFO = {"ichor.talos.talos_machine_info": {"cluster": "prod", "read_nodes": False}}


def names(result: dict[str, object]) -> list[str]:
    return [row["name"] for row in result["machines"]]  # type: ignore[attr-defined]


def test_would_be_records_stay_with_the_tasks_of_the_check_run(lab: Lab, project: Project) -> None:
    project.environment["ANSIBLE_CACHE_PLUGIN_CONNECTION"] = str(project.folder / "facts")
    project.play("cluster", [cluster(NETWORK)])
    tasks = [DISCOVER, {"name": "In the check run", **INFO}, {"name": "For real", "check_mode": False, **INFO}]
    run = project.play("mixed", tasks, "--check")
    assert names(run["In the check run"]) == [MACHINE]
    assert names(run["For real"]) == []
    assert not list(Path(project.folder / ".ansible").rglob("ichor-check-run")), "the folder goes with the run"
    assert names(project.play("next", [{"name": "The next check run", **INFO}], "--check")["The next check run"]) == []

    # A single task in check mode, in a run that acts.
    run = project.play("single", [{**DISCOVER, "check_mode": True}, {"name": "For real", **INFO}])
    assert run["Discover"]["changed"] is True
    assert names(run["For real"]) == []


def test_async_is_refused_with_one_sentence(lab: Lab, project: Project) -> None:
    run = project.play("async", [{**DISCOVER, "async": 60, "poll": 1}], rc=2)
    assert "async" in run["Discover"]["msg"]
    assert not project.store.exists()
