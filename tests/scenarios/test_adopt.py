# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster that talosctl made is adopted through the playbook: with what people really have in their configurations, for each contract,
without one write to a node (design section 15)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.lives.records import PLURALS, Folder, chosen
from tests.machinery.oddities import ODDITIES, Oddity, made, of_contract, with_edits
from tests.nursery.client import Nursery
from tests.scenarios.adopting import Running, named
from tests.scenarios.playing import Project, Run, network_of

#: What a control plane has of the old generation is the whole cluster's.
OLD_KEY = next(oddity for oddity in ODDITIES if oddity.name == "old generations of the encryption key")


@dataclass
class World:
    """A cluster in which each node has one oddity. `odd`: by the node's name; the first control plane has none."""

    running: Running
    odd: dict[str, Oddity]

    @property
    def blocked(self) -> dict[str, Oddity]:
        return {name: oddity for name, oddity in self.odd.items() if oddity.blocks}

    @property
    def good(self) -> list[str]:
        return [name for name in self.running.configs if name not in self.blocked]


def nodes(contract: str) -> tuple[dict[str, str], dict[str, Oddity]]:
    """The configurations by the name of the node, and whose is which oddity."""
    of_all = OLD_KEY.patches if contract == "1.12" else ()
    texts, odd = {"cp-1": made(contract, "controlplane", *of_all, named("cp-1"))}, {}
    for number, oddity in enumerate((one for one in of_contract(contract) if one.runs and "encryption key" not in one.name), 2):
        plane = oddity.role == "controlplane"
        name = f"{'cp' if plane else 'w'}-{number}"
        own = () if oddity.shape == "1.12" else (named(name),)
        texts[name] = with_edits(made(contract, oddity.role, *(of_all if plane else ()), *own, *oddity.patches, shape=oddity.shape), oddity)
        odd[name] = oddity
    return texts, odd


@pytest.fixture(params=["1.12", "1.13", "1.14"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    contract = str(request.param)
    texts, odd = nodes(contract)
    with Lab.start({"nodes": {}}, speed=20) as lab, chosen(tmp_path / "project" / "ichor") as records:
        yield World(Running(lab, tmp_path / "project", network_of(f"{__name__} {contract}"), texts, contract, kept_in=records).start(), odd)


def play(project: Project, running: Running, *more: str, rc: int | None = 0, **variables: Any) -> Run:
    options = {"ichor_cluster": "prod", "ichor_addresses": list(running.addresses.values()), "ichor_talosconfig": str(running.path),
               **running.records.variables, "ichor_allow_loopback": True, "ichor_consent_class_b": True, **variables}
    return project.run("ichor.talos.adopt", "-e", json.dumps(options), *more, rc=rc)


def test_what_people_have_is_adopted_and_what_no_record_holds_is_named(world: World) -> None:
    running = world.running
    records, lab = running.records, running.lab
    project = Project(running.folder, kept_in=records)
    mark = lab.mark()
    names = {name: running.record(name) for name in running.configs}

    check = play(project, running, "--check", "--diff")
    shown = check["Adopt"]
    told = {one["machine"]: one for one in shown["adoption"]}
    for name, oddity in world.odd.items():
        assert tuple(one["path"] for one in told[names[name]]["class_c"]) == oddity.blocks, (oddity.name, told[names[name]])
        assert all(one["hint"] for one in told[names[name]]["class_c"])
    assert shown["changed"] and set(shown["blocked"]) == {names[name] for name in world.blocked}
    # What a check opens may be made; records, bundle and events are not.
    assert not any(records.names(kind) for kind in PLURALS) and not records.events()
    with pytest.raises(FileNotFoundError):
        records.bundle()
    assert told[names["cp-1"]]["role"] == "controlplane" and told[names["cp-1"]]["install"]

    run = play(project, running)
    done = run["Adopt"]
    assert [(step["action"], step["target"]) for step in done["plan"]] == [(step["action"], step["target"]) for step in shown["plan"]]
    assert done["plan_id"] == shown["plan_id"] and {str(record["spec"].get("documents")) for record in done["records"]} == {
        str(record["spec"].get("documents")) for record in shown["records"]}
    assert {name: running.ready(name) for name in world.good} == dict.fromkeys(world.good, "Converged")
    assert running.status("prod", "clusters")["bootstrappedAt"]

    loop = Nursery()
    try:
        options = {key: value for key, value in running.options().items() if key not in ("addresses", "cluster")}
        for again in (True, False):
            second = loop.run("talos_adopt", check=again, consent_class_b=True, **running.options()).result
            assert not second["changed"] and "Nothing to adopt" in second["msg"], second
        del options["talosconfig"]
        ended = loop.run("talos_controller", cluster="prod", until="settled", max_runtime=60, discover=False, **options)
    finally:
        loop.close()
    assert ended.result["plan"] == [] and {one["reason"] for one in ended.result["machines"]} == {"Converged"}, ended.result
    assert len(ended.result["machines"]) == len(world.good) and lab.writes(since=mark) == {}
    assert not isinstance(records, Folder) or (records.path / "secrets" / "prod.yaml").stat().st_mode & 0o777 == 0o600
    written = "".join(records.everything().values()) + records.bundle().decode() + check.output + run.output + str(check.tasks) + str(run.tasks)
    assert [oddity.name for oddity in world.blocked.values() if oddity.secret and oddity.secret in written] == []
