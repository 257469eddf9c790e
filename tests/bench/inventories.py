# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of a thousand machines, against ansible-inventory with the same hosts and variables in Ansible's own format, and two seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .measure import Figure, environment, paired, run

COUNT, BEYOND = 1000, 2.0


def inventories() -> list[Figure]:
    """CPU of `ansible-inventory --list` over the directory store, which a busy machine does not lengthen."""
    machines = [{"name": f"m{number}", "address": f"10.0.{number // 250}.{number % 250 + 1}", "uuid": f"5a1f0c3e-51c8-4f0e-8d39-3cecef{number:06x}",
                 "serial": f"ACME-{number:04}", "mac": f"3c:ec:ef:00:{number // 256:02x}:{number % 256:02x}"} for number in range(COUNT)]
    with tempfile.TemporaryDirectory() as folder:
        run("subjects/fleet.py", stdin=json.dumps({"store": f"{folder}/ichor", "machines": machines}))
        Path(folder, "all.ichor.yml").write_text("plugin: ichor.talos.machines\n", encoding="utf-8")
        hosts = _listing(folder, "all.ichor.yml")["_meta"]["hostvars"]
        # JSON is YAML, and the yaml plugin of Ansible reads it.
        Path(folder, "same.yml").write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
        ours, bare = paired(lambda: _cpu(folder, "all.ichor.yml"), lambda: _cpu(folder, "same.yml"), rounds=2)
    return [Figure(f"ansible-inventory of {COUNT} machines, CPU", ours, bare + BEYOND, 1.0)]


def _listing(folder: str, source: str) -> dict[str, Any]:
    program = str(Path(sys.executable).with_name("ansible-inventory"))
    variables = {**environment(), "ANSIBLE_HOME": f"{folder}/.ansible", "PATH": os.environ["PATH"]}
    done = subprocess.run([program, "-i", source, "--list"], cwd=folder, env=variables, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    if len(told["_meta"]["hostvars"]) != COUNT:
        raise RuntimeError(f"{source}: not {COUNT} hosts: {done.stderr[-500:]}")
    return told


def _cpu(folder: str, source: str) -> float:
    """Seconds of CPU that the listing took; it is none where hosts are missing."""
    before = os.times()
    _listing(folder, source)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
