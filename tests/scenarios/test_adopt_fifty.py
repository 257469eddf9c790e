# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fifty machines that talosctl made are adopted in one run, and a person can follow it live (design section 15)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.lab.control import Lab
from tests.machinery.oddities import made
from tests.scenarios.adopting import Running, named
from tests.scenarios.playing import Project, network_of

COUNT = 50


def test_fifty_machines_in_one_run(tmp_path: Path) -> None:
    roles = {f"{'cp' if number <= 3 else 'w'}-{number}": "controlplane" if number <= 3 else "worker" for number in range(1, COUNT + 1)}
    texts = {name: made("1.13", role, named(name)) for name, role in roles.items()}
    with Lab.start({"nodes": {}}, speed=20) as lab:
        running = Running(lab, tmp_path / "project", network_of(__name__), texts).start()
        project, mark = Project(running.folder), lab.mark()
        options = {"ichor_cluster": "prod", "ichor_addresses": [f"{running.network}.1-{running.network}.{COUNT}"], "ichor_talosconfig": str(running.path),
                   "ichor_allow_loopback": True, "ichor_consent_class_b": True}
        check = project.run("ichor.talos.adopt", "-e", json.dumps(options), "--check")
        run = project.run("ichor.talos.adopt", "-e", json.dumps(options))
        assert check["Adopt"]["plan_id"] == run["Adopt"]["plan_id"] and not check["Adopt"]["blocked"]
        assert Counter(running.ready(name) for name in texts) == {"Converged": COUNT} and lab.writes(since=mark) == {}
        assert f"{COUNT} of {COUNT} nodes" in run.output
        lines = [line.strip() for line in run.output.splitlines()]
        for name in texts:
            assert [line for line in lines if line.startswith(f"{running.record(name)}: released")], (name, run.output)
        again = project.run("ichor.talos.adopt", "-e", json.dumps(options))
        assert not again["Adopt"]["changed"] and "Every machine is adopted already." in again["Adopt"]["msg"]
