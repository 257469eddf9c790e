# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook `report` on a cluster that runs, with a patch that was not applied yet: the page has drift, plan, etcd, events; nodes are only read."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.scenarios.running import Kept, kept


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    yield from kept(tmp_path_factory.mktemp("report") / "project", __name__, planes=1, workers=1)


def test_the_page_of_a_cluster_that_runs(fleet: Kept) -> None:
    project, names = fleet.project, fleet.cluster.names
    fleet.cluster.module("talos_config_patch", name="forwarding", cluster="prod", layer="cluster",
                         documents=[{"machine": {"sysctls": {"net.ipv4.ip_forward": "1"}}}])
    before, mark = fleet.cluster.everything(), fleet.lab.mark()
    variables = {**project.records.variables, "ichor_allow_loopback": True, "ichor_report_path": str(project.folder / "fleet.html"),
                 "ichor_report_json": str(project.folder / "fleet.json"), "ichor_report_title": "Production"}
    run = project.run("ichor.talos.report", "-e", json.dumps(variables))
    document = json.loads((project.folder / "fleet.json").read_text(encoding="utf-8"))
    page = (project.folder / "fleet.html").read_text(encoding="utf-8")
    assert fleet.cluster.everything() == before and not [entry for entry in fleet.lab.log(since=mark) if entry.get("kind") == "write"]
    assert run["Write the page"]["totals"] == document["totals"]
    assert {entry["machine"]: [one["path"] for one in entry["paths"]] for entry in document["drift"]} == {
        name: ["machine.sysctls.[net.ipv4.ip_forward]"] for name in names.values()}
    assert {step["target"] for step in document["plan"]["steps"]} == set(names.values())
    assert [(one["machine"], one["leader"]) for one in document["clusters"][0]["etcd"]] == [(names["cp-1"], True)]
    assert {event["reason"] for event in document["events"]} >= {"NodeJoined"}
    assert [one for one in document["certificates"] if one["what"] == "CA of the Talos API" and one["days"] > 3000]
    assert "<title>Production</title>" in page and "machine.sysctls.[net.ipv4.ip_forward]" in page and "PRIVATE KEY" not in page
    assert not list(project.temporary.glob("ichor-report-*"))
