# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rows of removals, every rule by a row, each gate missed when it is taken away, and an incident that is known from another tool."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide import member_death, removal_gates
from ansible_collections.ichor.talos.plugins.module_utils._decide.etcd_member import MemberSeen, decide_member
from ansible_collections.ichor.talos.plugins.module_utils._decide.removal import decide_removal
from ansible_collections.ichor.talos.plugins.module_utils._decide.removal_words import MemberLook, RemovalWish
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Target
from tests.unit._decide import removal_case as case
from tests.unit._decide.rows import Row
from tests.unit._decide.rows_removal import REMOVAL

ROOT = Path(__file__).parents[3]
FILES = ("removal.py", "removal_drain.py", "removal_gates.py", "member_death.py", "etcd_member.py")


@pytest.mark.parametrize("row", REMOVAL, ids=lambda row: row.id)
def test_row(row: Row) -> None:
    assert row.faults() == []


def test_every_row_has_an_id_of_its_own() -> None:
    assert len({row.id for row in REMOVAL}) == len(REMOVAL)


def test_every_rule_has_a_row() -> None:
    text = "".join((ROOT / "plugins/module_utils/_decide" / name).read_text(encoding="utf-8") for name in FILES)
    assert set(re.findall(r'"(14/[\w-]+)"', text)) - {rule for row in REMOVAL for rule in row.rules} == set()


@pytest.mark.parametrize(("module", "rule"), [(module, gate.id) for module in (member_death, removal_gates) for gate in module.GATES])
def test_without_this_gate_a_row_fails(module: ModuleType, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GATES", tuple(gate for gate in module.GATES if gate.id != rule))

    def fails(row: Row) -> bool:
        try:
            return bool(row.faults())
        except (ValueError, AttributeError):  # a gate keeps later code from what it cannot bear
            return True

    assert any(fails(row) for row in REMOVAL)


def test_an_audit_by_host_names_removes_nobody() -> None:
    """Members are listed by their full names and the machines by their short ones, all alive: another tool took the three for strangers
    and removed two of them within 20 ms. Here nobody goes, neither by the machine nor by the id, whoever is asked first."""
    members = tuple(case.member(number, f"cp{number}.example.com") for number in (1, 2, 3))
    view = case.view(healthy=(1, 2, 3), members=members)
    for number in (1, 2, 3):
        seen = case.silent_plane()
        alive = replace(seen, target=replace(seen.target, name=f"cp{number}"), wish=RemovalWish(f"cp{number}", skip_drain=True), machine=case.plane(number),
                        etcd=view, look=MemberLook(case.status(number), case.status(number)))
        assert decide_removal(alive).plan.steps == ()
        by_id = MemberSeen(Target(name="prod"), case.hex_of(number), seen.cluster, seen.machines, view, alive.look)
        assert decide_member(by_id).plan.steps == ()
        assert decide_member(replace(by_id, look=MemberLook(case.SILENT, case.status(number)))).plan.steps == ()
