# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page on reclaiming says what the design wants it to say, and its record is one."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim_gates import CONFIGURED_GATES, NODE_GATES
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record
from ansible_collections.ichor.talos.plugins.module_utils._model.schema import validate

TEXT = (Path(__file__).parents[3] / "docs" / "reclaiming.md").read_text(encoding="utf-8")


def test_it_says_that_without_the_credential_there_is_no_way_over_the_api() -> None:
    assert "there is no way over the API" in TEXT and "reinstalled" in TEXT and "talos.experimental.wipe=system" in TEXT


def test_reasons_of_its_table_are_reasons_of_gates() -> None:
    rows = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    named = {reason for row in rows for reason in re.findall(r"`(\w+)`", row)}
    assert named and named <= {gate.reason for gate in (*NODE_GATES, *CONFIGURED_GATES) if isinstance(gate.reason, str)}


def test_its_record_is_one() -> None:
    block = next(yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL) if "kind: MachineReclaim" in text)
    assert not list(validate(Record(block["kind"], block["metadata"]["name"], block["spec"])))
