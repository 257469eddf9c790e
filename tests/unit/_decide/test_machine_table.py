# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of machines fits 80 columns under Ansible's indent, and says what a person wants to know."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ichor.talos.plugins.module_utils._decide.machine_table import WIDTH, TableRow, table
from ansible_collections.ichor.talos.plugins.module_utils._decide.moments_shown import age
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment

NOW = 1_790_000_000.0
WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x17F), max_size=300)


def test_what_is_well_takes_one_line_and_what_is_not_says_why() -> None:
    lines = table([TableRow("cp-1", "running", "2 min", "Converged", ready=True),
                   TableRow("cp-2", "booting", "40 s", "NodeStarting", "the bootstrap of the cluster", "Bootstrap it with talos_bootstrap, once.",
                            because="The control plane is up.")])
    assert lines == [
        "machine                      stage        since   reason",
        "cp-1                         running      2 min   Converged",
        "cp-2                         booting      40 s    NodeStarting",
        "  because   The control plane is up.",
        "  waits for the bootstrap of the cluster",
        "  do now    Bootstrap it with talos_bootstrap, once."]


def test_what_is_the_same_for_several_machines_is_said_once_below_them() -> None:
    waits = ("a person's decision", "Approve or reject it with talos_machine_approval.")
    rows = [TableRow(f"m-{number}", "maintenance", "10 s", "PendingApproval", *waits, because="It is pending.") for number in (1, 2)]
    lines = table([rows[0], TableRow("m-3", "running", "2 s", "Drifted", because="Something differs."), rows[1]])
    assert [line.split()[0] for line in lines] == ["machine", "m-1", "m-2", "because", "waits", "do", "m-3", "because"]


def test_a_fleet_that_is_well_is_counted_and_the_rest_is_told() -> None:
    rows = [TableRow(f"m-{number:04}", "running", "1 d", "Converged", ready=number != 500) for number in range(1000)]
    lines = table(rows)
    assert len(lines) == 3 and lines[1].startswith("m-0500") and lines[2] == "999 machines are Ready"
    ill = table([TableRow(f"m-{number:04}", "", "", "") for number in range(1000)])
    assert len(ill) == 202 and ill[-1] == "and 800 more on which something is not well"
    assert table([]) == []


@given(st.lists(st.builds(TableRow, WORDS, WORDS, st.sampled_from(["", "12 min"]), WORDS, WORDS, WORDS, st.booleans(), WORDS), max_size=5))
def test_it_fits_a_terminal_whatever_it_says(rows: list[TableRow]) -> None:
    assert all(len(line) <= WIDTH for line in table(rows))


def test_ages() -> None:
    assert [age(moment(NOW - passed), NOW) for passed in (0, 59, 60, 3599, 3600, 86_399, 86_400, 10 * 86_400, -5)] == [
        "0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 d", "10 d", "0 s"]
    assert age("", NOW) == age("yesterday", NOW) == ""
