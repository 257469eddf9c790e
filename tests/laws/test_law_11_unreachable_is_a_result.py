# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 11: an unreachable machine is a result, not a failed run: the other machines go on, and the dead one is listed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from tests.unit._controller.fleet import Fleet

VICTIM = 3
HERE = Endpoint(f"10.0.0.{VICTIM}")


def raising(error: BaseException) -> Callable[[Fleet], None]:
    """Every call to the victim, and every write about it, ends with this."""
    def trouble(fleet: Fleet) -> None:
        def hook(count: int, what: str) -> None:
            if what.endswith((f" {HERE}", f" w-{VICTIM}")):
                raise error
        fleet.hook = hook
    return trouble


TROUBLES: dict[str, Callable[[Fleet], None]] = {
    "it is switched off": lambda fleet: setattr(fleet.nodes[HERE], "mode", "closed"),
    "it is gone": lambda fleet: fleet.nodes.pop(HERE),
    "another machine has its address": lambda fleet: setattr(fleet.nodes[HERE], "identity", w.identity(77)),
    "calls time out": raising(w.error("TimedOut", HERE)),
    "answers are nonsense": raising(w.error("AnswerInvalid", HERE)),
    "its status cannot be written": raising(TalosError("StoreFull", "The disk is full.", "Make room.")),
    "a fault of ours": raising(ZeroDivisionError("division by zero")),
}


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("runs", [False, True], ids=["new", "running"])
def test_the_others_go_on_and_it_is_listed(trouble: str, runs: bool) -> None:
    fleet = Fleet(bootstrapped=True)
    fleet.runs("cp-1", 1, "controlplane")
    for number in range(2, 7):
        (fleet.runs if runs and number == VICTIM else fleet.waits)(f"w-{number}", number)
    TROUBLES[trouble](fleet)
    outcome = fleet.reconcile(passes=2)
    assert sorted(fleet.accepted) == [f"w-{number}" for number in range(2, 7) if number != VICTIM]
    assert not outcome.refused and {row.name for row in outcome.machines} == {"cp-1", *(f"w-{number}" for number in range(2, 7))}
    if not (runs and trouble == "its status cannot be written"):  # nothing had to be written then
        assert f"w-{VICTIM}" in (*outcome.blocked, *outcome.unreachable)
        assert next(row for row in outcome.machines if row.name == f"w-{VICTIM}").message


def test_all_of_them_may_be_silent() -> None:
    fleet = Fleet(bootstrapped=True)
    for number in range(1, 5):
        fleet.runs(f"m-{number}", number, "controlplane" if number == 1 else "worker")
    fleet.nodes.clear()
    outcome = fleet.reconcile(until_settled=True, max_runtime=1000.0)
    assert outcome.unreachable == ("m-1", "m-2", "m-3", "m-4") and outcome.extra["ended"] == "settled" and not outcome.plan.steps
