# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A configuration that Talos refuses is refused by a lab node with Talos's own text, and what Talos accepts is accepted."""

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
from tests.parts.lab_oracle import program
from tests.parts.oracle import Oracle

VERSION, ADDRESS = "v1.13.9", "127.0.91.20"
GOOD = ClusterSecrets("refusals", endpoint=f"https://{ADDRESS}:6443").config("controlplane", version=VERSION, hostname="cp1")
BAD = {
    "unknown-key": GOOD.replace("debug: false", "debug: false\nnonsense: 1"),
    "unknown-kind": GOOD + "---\napiVersion: v1alpha1\nkind: NoSuchConfig\n",
    "no-disk": GOOD.replace("        disk: /dev/sda\n", ""),
    "bad-endpoint": GOOD.replace(f"endpoint: https://{ADDRESS}:6443", "endpoint: nonsense"),
    "bad-role": GOOD.replace("type: controlplane", "type: nonsense"),
    "bad-type": GOOD.replace("debug: false", "debug: perhaps"),
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    judge = program(tmp_path_factory.mktemp("oracle"))
    with Lab.start({"nodes": {"cp1": {"address": ADDRESS, "version": VERSION}}}, speed=20, oracle=str(judge)) as running:
        running.wait(node="cp1", stage="maintenance")
        yield running


def apply(lab: Lab, path: Path) -> dict[str, Any]:
    client = build("talos-client-1.13")
    pin = lab.state(node="cp1")["fingerprint"]
    done = subprocess.run([str(client), "-endpoint", ADDRESS, "-call", "apply", "-fingerprint", pin, "-file", str(path)],
                          capture_output=True, text=True, timeout=60, check=False)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("name", sorted(BAD))
def test_refused_with_the_text_of_talos(lab: Lab, tmp_path: Path, name: str) -> None:
    assert BAD[name] != GOOD
    with Oracle("1.13") as oracle:
        said = oracle.ask(op="validate", config=BAD[name], mode="metal")["error"]
    assert said
    path = tmp_path / "config.yaml"
    path.write_text(BAD[name], encoding="utf-8")
    answer = apply(lab, path)
    assert answer["code"] == "InvalidArgument"
    assert said.strip() in answer["error"]
    assert lab.state(node="cp1")["stage"] == "maintenance"


def test_the_good_one_is_accepted_afterwards(lab: Lab, tmp_path: Path) -> None:
    with Oracle("1.13") as oracle:
        assert "error" not in oracle.ask(op="validate", config=GOOD, mode="metal")
    path = tmp_path / "config.yaml"
    path.write_text(GOOD, encoding="utf-8")
    assert apply(lab, path)["mode"] == "NO_REBOOT"
