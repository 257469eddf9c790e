# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`talos_report`: two files and nothing else are written, nothing of a secret is in them, and what cannot be read is said."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Broken
from ansible_collections.ichor.talos.plugins.module_utils._operations import report
from ansible_collections.ichor.talos.plugins.module_utils._operations.silent_nodes import SilentNodes
from ansible_collections.ichor.talos.plugins.module_utils._store.layout import marker_text
from tests.scenarios.playing import tree_hash
from tests.unit.machine_world import Gate, Node, Nodes, Store, cluster, credentials, facts, identity, machine, ports


def written(store: Store, folder: Path, *nodes: Node, check: bool = False, **options: Any) -> Any:
    given = ports(Nodes(*nodes), store, credentials=credentials, check=check)
    request = report.Request(path=str(folder / "fleet.html"), json_path=str(folder / "fleet.json"), **options)
    outcome = asyncio.run(report.run(request, given, Gate(check)))
    assert store.writes == []
    return outcome


def test_both_files_say_the_same(tmp_path: Path) -> None:
    store = Store(cluster(), machine(1, "approved", role="controlplane"), machine(2))
    outcome = written(store, tmp_path, Node(facts("10.0.0.1", identity(1)), "silent"))
    assert [step.action for step in outcome.plan.steps] == ["WriteReport", "WriteReport"] and len(outcome.executed) == 2
    document, page = json.loads((tmp_path / "fleet.json").read_text()), (tmp_path / "fleet.html").read_text()
    assert [(row["name"], row["state"]) for row in document["machines"]] == [("prod-1", "attention"), ("prod-2", "pending")]
    assert outcome.extra["totals"] == document["totals"] and outcome.unreachable == ("prod-1",)
    assert "prod-1" in page and "prod-2" in page and sorted(path.name for path in tmp_path.iterdir()) == ["fleet.html", "fleet.json"]


def test_a_machine_that_is_down_is_waited_for_once(tmp_path: Path) -> None:
    nodes = Nodes(Node(facts("10.0.0.1", identity(1)), "silent"), Node(facts("10.0.0.2", identity(2))))
    store = Store(cluster(), machine(1, "approved", role="controlplane"), machine(2, "approved", role="worker"))
    asyncio.run(report.run(report.Request(json_path=str(tmp_path / "fleet.json")), ports(nodes, store, credentials=credentials), Gate(False)))
    document = json.loads((tmp_path / "fleet.json").read_text())
    assert nodes.asked().count("10.0.0.1:50000") == 1 and nodes.asked().count("10.0.0.2:50000") > 1
    assert [row["answers"] for row in document["machines"]] == [False, True] and document["clusters"][0]["etcd"][0]["reason"] == "NotListening"


def test_what_fails_within_a_session_says_nothing_of_the_node(tmp_path: Path) -> None:
    nodes = SilentNodes(Nodes(Node(facts("10.0.0.1", identity(1)))))
    endpoint = facts("10.0.0.1", identity(1)).endpoint

    async def hang() -> None:
        async with nodes.maintenance(endpoint):
            raise TalosError("TimedOut", "The call hung.", "")

    for dummy in range(2):
        with pytest.raises(TalosError, match="The call hung"):
            asyncio.run(hang())


def test_in_check_mode_nothing_is_written(tmp_path: Path) -> None:
    outcome = written(Store(cluster()), tmp_path, check=True)
    assert outcome.plan.changed and outcome.executed == () and list(tmp_path.iterdir()) == []


def test_what_is_a_secret_of_the_run_is_masked_in_both(tmp_path: Path) -> None:
    def mask(data: Any) -> Any:
        return json.loads(json.dumps(data).replace("hush", "****"))

    written(Store(cluster(), machine(1, "approved", hostname="hush")), tmp_path, read_nodes=False, mask=mask)
    assert all("hush" not in path.read_text() and "****" in path.read_text() for path in tmp_path.iterdir())


def test_a_record_that_cannot_be_read_is_on_the_page(tmp_path: Path) -> None:
    written(Store(cluster(), broken=[Broken(MACHINE, "prod-9", "machines/prod-9.yaml", 3, "no YAML")]), tmp_path, read_nodes=False)
    assert [entry["name"] for entry in json.loads((tmp_path / "fleet.json").read_text())["broken"]] == ["prod-9"]
    assert "machines/prod-9.yaml, line 3" in (tmp_path / "fleet.html").read_text()


@pytest.mark.parametrize("path", ["nowhere/fleet.html", ".", " ", "pipe", "link-to-a-pipe", "f" * 300, "ichor/.ichor-store", "ichor/clusters/prod.yaml",
                                  "ichor/.state/new.html", "state/events.jsonl", "link-to-a-record"])
def test_a_place_that_is_none_is_refused_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """What is there stays: a report would be put in the place of a record, or of a device for everybody on the machine."""
    monkeypatch.chdir(tmp_path)
    for place in ("ichor/clusters/prod.yaml", "ichor/.state/x", "state/events.jsonl"):
        Path(place).parent.mkdir(parents=True)
        Path(place).write_text("kept", encoding="utf-8")
    Path("ichor/.ichor-store").write_bytes(marker_text("1"))
    Path("state/store.json").write_bytes(marker_text("1"))
    Path("state/lock").touch()
    os.mkfifo("pipe")
    Path("link-to-a-pipe").symlink_to("pipe")
    Path("link-to-a-record").symlink_to("ichor/clusters/prod.yaml")
    before = tree_hash(tmp_path)
    nodes = Nodes()
    for request in (report.Request(path=path), report.Request(path="fleet.html", json_path=path)):
        with pytest.raises(TalosError, match="cannot be written"):
            asyncio.run(report.run(request, ports(nodes, Store(cluster())), Gate(False)))
    assert tree_hash(tmp_path) == before and nodes.calls == []


def test_two_reports_in_one_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TalosError, match="path and json_path are both"):
        asyncio.run(report.run(report.Request(path=str(tmp_path / "fleet"), json_path=str(tmp_path / "fleet")), ports(Nodes(), Store(cluster())), Gate(False)))
