# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The definition of the execution environment: ansible-builder takes it, and finds what other execution environments need for the collection."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml
from tests.workshop.environments import ROOT
from tests.workshop.tree import NAME

DEFINITION = ROOT / "meta/execution-environment.yml"
BOUND = re.compile(r"[A-Za-z0-9._-]+>=[0-9.]+")


def builder(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "ansible_builder", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def requirements(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_a_build_context_can_be_created(tmp_path: Path) -> None:
    builder("create", "-f", str(DEFINITION), "-c", str(tmp_path / "context"))
    context = tmp_path / "context"
    [recipe] = [path for path in context.iterdir() if path.name in ("Containerfile", "Dockerfile")]
    text = recipe.read_text(encoding="utf-8")
    assert "dumb-init>=1.2.5" in text and "ansible-core>=" in text
    assert (context / "_build/requirements.txt").read_text(encoding="utf-8") == (ROOT / "meta/ee-requirements.txt").read_text(encoding="utf-8")
    assert yaml.safe_load((context / "_build/requirements.yml").read_text(encoding="utf-8")) == {"collections": ["ichor.talos"]}


def test_other_execution_environments_get_what_the_collection_needs(tmp_path: Path) -> None:
    place = tmp_path / NAME
    place.parent.mkdir(parents=True)
    place.symlink_to(ROOT)
    found = yaml.safe_load(builder("introspect", str(tmp_path)).split("---", 1)[1])
    wanted = requirements((ROOT / "meta/ee-requirements.txt").read_text(encoding="utf-8"))
    # ansible-builder leaves out what ansible-core brings.
    assert {entry.split("#")[0].strip() for entry in found["python"]} == set(wanted) - {"PyYAML>=6.0"}
    assert [entry.split("#")[0].strip() for entry in found["system"]] == ["helm [platform:fedora]"]


def test_only_lower_bounds() -> None:
    definition = yaml.safe_load(DEFINITION.read_text(encoding="utf-8"))
    named = [definition["dependencies"][name]["package_pip"] for name in ("ansible_core", "ansible_runner")]
    lines = [*requirements((ROOT / "meta/ee-requirements.txt").read_text(encoding="utf-8")), *named, definition["options"]["container_init"]["package_pip"]]
    assert len(lines) >= 10 and all(BOUND.fullmatch(line) for line in lines)
