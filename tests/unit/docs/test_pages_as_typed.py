# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a page tells a person to type is taken: playbooks and their variables exist, tasks pass the argument specs, refusals are reasons that there are."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record
from ansible_collections.ichor.talos.plugins.module_utils._model.schema import validate
from tests.unit.docs.test_pages import PAGES, PREFIX, ROOT, tasks

#: A command, with the lines that it goes on in.
COMMAND = re.compile(r"ansible-playbook ichor\.talos\.(?:[^\n`]*\\\n)*[^\n`]*")
#: In place of a template, which stands for whatever the option takes.
ANYTHING: dict[str, Any] = {"list": [], "dict": {}, "bool": False, "int": 1, "float": 1.0}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def head_of(playbook: str) -> str:
    """What a playbook says of itself before its first play."""
    return (ROOT / "playbooks" / f"{playbook}.yml").read_text(encoding="utf-8").partition("\n\n")[0]


def variables(words: list[str]) -> Iterator[str]:
    for before, word in zip(words, words[1:]):
        if before in ("-e", "--extra-vars") and not word.startswith("@"):
            yield from json.loads(word) if word.startswith("{") else (part.partition("=")[0] for part in word.split())


def commands(page: str) -> Iterator[tuple[str, list[str]]]:
    """Each playbook of the collection that the page has run, with the words behind it."""
    for found in COMMAND.findall(text_of(page)):
        words = shlex.split(found.replace("\\\n", " "), comments=True)
        yield from ((word.removeprefix(PREFIX), words) for word in words if word.startswith(PREFIX))


@pytest.mark.parametrize("page", PAGES)
def test_commands_name_playbooks_and_variables_that_exist(page: str) -> None:
    for playbook, words in commands(page):
        assert (ROOT / "playbooks" / f"{playbook}.yml").exists(), f"{page}: there is no playbook {playbook}"
        known = set(re.findall(r"^#   (ichor_\w+)", head_of(playbook) + head_of("discover").partition("Variables of all playbooks")[2], re.MULTILINE))
        unknown = {name for name in variables(words) if name.startswith("ichor_")} - known
        assert not unknown, f"{page}: {playbook} does not describe {', '.join(sorted(unknown))}"


def test_commands_are_found() -> None:
    named = {playbook for page in PAGES for playbook, dummy in commands(page)}
    assert {"remove", "restore", "backup", "discover", "apply"} <= named


@pytest.mark.parametrize("page", PAGES)
def test_tasks_pass_the_argument_specs(page: str) -> None:
    for task in tasks(text_of(page)):
        for key, given in task.items():
            name = key.removeprefix(PREFIX)
            if key == name or not isinstance(given, dict) or not (ROOT / f"plugins/modules/{name}.py").exists():
                continue
            spec = importlib.import_module(f"ansible_collections.ichor.talos.plugins.modules.{name}").SPEC.constraints()
            spec.pop("supports_check_mode")
            types = {option: str(about.get("type", "str")) for option, about in spec["argument_spec"].items()}
            filled = {option: ANYTHING.get(types.get(option, "str"), value) if isinstance(value, str) and "{{" in value else value
                      for option, value in given.items()}
            problems = ArgumentSpecValidator(**spec).validate(filled).error_messages
            assert not problems, f"{page}: {key}: {'; '.join(problems)}"


@pytest.mark.parametrize("page", ["replace-a-control-plane", "lost-quorum", "restore", "reclaiming"])
def test_refusals_that_a_page_names_are_reasons(page: str) -> None:
    reasons = set(re.findall(r"`(\w+)`", text_of("docs/reasons.md")))
    rows = re.findall(r"^\| (`.*?) \|", text_of(f"docs/{page}.md"), re.MULTILINE)
    assert {reason for row in rows for reason in re.findall(r"`(\w+)`", row)} <= reasons


def test_the_record_of_a_backup_is_one() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", text_of("docs/restore.md"), re.DOTALL | re.MULTILINE)
    (record,) = (one for block in blocks if isinstance(one := yaml.safe_load(block), dict) and one.get("kind") == "TalosEtcdBackup")
    assert not list(validate(Record(record["kind"], record["metadata"]["name"], record["spec"])))
