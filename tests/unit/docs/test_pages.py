# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the pages show is what there is: the README's excerpt is of the recorded demonstration, and tasks have options that exist."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PAGES = ("README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")))
PREFIX = "ichor.talos."


def steady(line: str) -> str:
    """A line without what differs from run to run: hashes, certificates, times, counts of handshakes."""
    line = re.sub(r"[A-Za-z0-9+/]{43}=", "CERTIFICATE", line)
    line = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", line)
    return re.sub(r"\bPlan [0-9a-f]{12}", "Plan ID", line).strip()


def test_the_excerpt_of_the_readme_is_of_the_recording() -> None:
    excerpt = re.search(r"```text\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert excerpt is not None
    recorded = [steady(line) for line in (ROOT / "docs" / "demo.txt").read_text(encoding="utf-8").splitlines()]
    where = 0
    for line in filter(None, map(steady, excerpt[1].splitlines())):
        assert line in recorded[where:], f"the recording does not go on with: {line}"
        where = recorded.index(line, where) + 1


def tasks(text: str) -> Iterator[dict[str, Any]]:
    """Every task of this collection in the YAML blocks of a page, whatever it is nested in."""
    def walk(data: Any) -> Iterator[dict[str, Any]]:
        if isinstance(data, dict):
            if any(isinstance(key, str) and key.startswith(PREFIX) for key in data):
                yield data
            for value in data.values():
                yield from walk(value)
        elif isinstance(data, list):
            for value in data:
                yield from walk(value)

    for block in re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for document in yaml.safe_load_all(block):
            yield from walk(document)


def options_of(module: str) -> set[str]:
    """The options of a module, those of the fragments that it extends with them."""
    source = (ROOT / "plugins/modules" / f"{module}.py").read_text(encoding="utf-8")
    text = next(node.value.value for node in ast.parse(source).body  # type: ignore[attr-defined]
                if isinstance(node, ast.Assign) and node.targets[0].id == "DOCUMENTATION")  # type: ignore[attr-defined]
    documented = yaml.safe_load(text)
    found = set(documented.get("options", {}))
    for name in documented.get("extends_documentation_fragment", []):
        fragment, dummy, section = name.removeprefix(PREFIX).partition(".")
        holder = importlib.import_module(f"ansible_collections.ichor.talos.plugins.doc_fragments.{fragment}").ModuleDocFragment
        found |= set(yaml.safe_load(getattr(holder, section.upper() or "DOCUMENTATION")).get("options", {}))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_tasks_have_options_that_exist(page: str) -> None:
    for task in tasks((ROOT / page).read_text(encoding="utf-8")):
        for key, options in task.items():
            if key.startswith(PREFIX) and (ROOT / "plugins/modules" / f"{key.removeprefix(PREFIX)}.py").exists() and isinstance(options, dict):
                unknown = set(options) - options_of(key.removeprefix(PREFIX))
                assert not unknown, f"{page}: {key} has no option {', '.join(sorted(unknown))}"


def test_a_cluster_that_a_page_describes_can_be_rendered() -> None:
    described = [task for page in PAGES for task in tasks((ROOT / page).read_text(encoding="utf-8")) if "endpoint" in task.get(f"{PREFIX}talos_cluster", {})]
    assert described
    assert all({"kubernetes_version", "talos_version", "bundle"} <= task[f"{PREFIX}talos_cluster"].keys() for task in described)
