# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client that talosctl is made of talks to lab nodes in both modes, with a pin and with client certificates."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.configs import ClusterSecrets
from tests.lab.control import Lab
from tests.parts.build import build

UUID = "4c4c4544-0000-0000-0000-0000000000c1"
VERSIONS = {"v1.13.9": "127.0.91.13", "v1.14.0-rc.1": "127.0.91.14"}


@pytest.fixture(scope="module")
def program() -> Path:
    return build("talos-client-1.13")


@pytest.fixture(params=sorted(VERSIONS))
def node(request: pytest.FixtureRequest) -> Iterator[tuple[Lab, str, str]]:
    """A lab with one node in maintenance mode: the lab, its address, its version."""
    address = VERSIONS[request.param]
    machine = {"uuid": UUID, "serial": "SN-C1", "links": [{"name": "enp1s0", "mac": "52:54:00:00:00:c1"}, {"name": "bond0", "kind": "bond"}],
               "disks": [{"name": "sda"}, {"name": "nvme0n1"}]}
    with Lab.start({"nodes": {"cp1": {"address": address, "version": request.param, "machine": machine}}}, speed=20) as lab:
        lab.wait(node="cp1", stage="maintenance")
        yield lab, address, request.param


def call(program: Path, address: str, name: str, *more: str, fails: bool = False) -> dict[str, Any]:
    done = subprocess.run([str(program), "-endpoint", address, "-call", name, *more], capture_output=True, text=True, timeout=60, check=False)
    assert bool(done.returncode) == fails, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_whole_life_through_talos_own_client(program: Path, node: tuple[Lab, str, str], tmp_path: Path) -> None:
    lab, address, version = node
    pin = lab.state(node="cp1")["fingerprint"]
    insecure = ("-fingerprint", pin)

    told = call(program, address, "version", *insecure)
    assert told == {"tag": version, "features": False}
    assert call(program, address, "identity", *insecure)["UUID"] == UUID
    disks = call(program, address, "disks", *insecure)
    assert {"sda", "nvme0n1"} <= set(disks) and disks["sda"]["Size"] > 0
    links = call(program, address, "links", *insecure)
    assert {"enp1s0", "bond0"} <= set(links)
    assert call(program, address, "stage", *insecure) == {"stage": "maintenance", "ready": True}

    wrong = call(program, address, "version", "-fingerprint", "A" * 43 + "=", fails=True)
    assert wrong["code"] == "Unavailable" and "doesn't match" in wrong["error"]
    early = call(program, address, "bootstrap", *insecure, fails=True)
    assert early["code"] == "PermissionDenied" and "not authorized" in early["error"]

    secrets = ClusterSecrets("machinery", endpoint=f"https://{address}:6443")
    config = tmp_path / "controlplane.yaml"
    config.write_text(secrets.config("controlplane", version=version, hostname="cp1"), encoding="utf-8")
    reply = call(program, address, "apply", "-file", str(config), *insecure)
    assert reply == {"mode": "NO_REBOOT", "details": "Applied configuration without a reboot"}

    talosconfig = tmp_path / "talosconfig"
    talosconfig.write_text(secrets.talosconfig([address]), encoding="utf-8")
    admin = ("-talosconfig", str(talosconfig))
    lab.wait(node="cp1", stage="booting", seconds=60)
    lab.wait(node="cp1", stage="configured", seconds=60)
    assert call(program, address, "version", *admin) == {"tag": version, "features": True}
    assert call(program, address, "stage", *insecure, fails=True)["code"] == "Unavailable"
    bootstrap_until_accepted(program, address, admin)
    lab.wait(node="cp1", stage="ready", seconds=60)
    assert call(program, address, "stage", *admin) == {"stage": "running", "ready": True}
    assert call(program, address, "identity", *admin)["UUID"] == UUID
    assert {"sda", "nvme0n1"} <= set(call(program, address, "disks", *admin))
    assert {"enp1s0", "bond0"} <= set(call(program, address, "links", *admin))
    config.write_text(config.read_text(encoding="utf-8").replace("machine:\n", "machine:\n    sysctls:\n        vm.max_map_count: \"262144\"\n", 1),
                      encoding="utf-8")
    reply = call(program, address, "apply", "-file", str(config), *admin)
    assert reply["mode"] == "NO_REBOOT" and reply["details"].startswith("Applied configuration without a reboot")
    assert lab.writes(accepted_only=True) == {"ApplyConfiguration": 2, "Bootstrap": 1}


def bootstrap_until_accepted(program: Path, address: str, admin: tuple[str, ...]) -> None:
    """Talos refuses a bootstrap until the install is over, with FailedPrecondition ("try again")."""
    for unused in range(200):
        done = subprocess.run([str(program), "-endpoint", address, "-call", "bootstrap", *admin], capture_output=True, text=True,
                              timeout=60, check=False)
        if not done.returncode:
            return
        answer = json.loads(done.stdout)
        assert answer["code"] in ("FailedPrecondition", "Unavailable"), answer
    pytest.fail("the node never accepted the bootstrap")
