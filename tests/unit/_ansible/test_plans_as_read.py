# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans as somebody reads them who has only the output: what is done to which machine, whether it restarts or is wiped, what stays, what is not known
(design section 20, "The plan is shown"). Each row has the words that answer one of these questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._ansible.plan_text import plan_lines
from ansible_collections.ichor.talos.plugins.module_utils._decide import convergence, removal
from ansible_collections.ichor.talos.plugins.module_utils._decide.convergence_words import Found
from ansible_collections.ichor.talos.plugins.module_utils._decide.restore import Go, decide_restore, restore_warnings
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan

from tests.unit._decide import adoption_world, converging_case, removal_case, test_restore

LATER = 1e9


def _drift(name: str, **changes: object) -> Plan:
    found = convergence.decide(replace(converging_case.case(change=getattr(converging_case, name)), **changes), LATER)  # type: ignore[arg-type]
    assert isinstance(found, Found)
    return Plan(found.steps, found.refusals, found.warnings)


def _reset_alone() -> Plan:
    seen = removal_case.worker()
    return removal.decide_removal(replace(seen, wish=replace(seen.wish, record=False))).plan


def _restore() -> Plan:
    seen = test_restore.seen(others=test_restore.TWO, answers_of={"m2": test_restore.SILENT, "m3": test_restore.SILENT}, lost=("m2", "m3"))
    found = decide_restore(seen)
    assert isinstance(found, Go)
    return Plan((found.step,), warnings=restore_warnings(seen))


@dataclass(frozen=True)
class Read:
    """A plan, what its lines have to say, and what they must not."""

    plan: Callable[[], Plan]
    says: tuple[str, ...]
    never: tuple[str, ...] = ()


READ = {
    "a change that is taken at once": Read(
        lambda: _drift("sysctl"), ("apply drift: m1", "differs from the records; it is taken at once, without a reboot"), ("[reboot", "[wipe")),
    "a change that restarts the machine": Read(
        lambda: _drift("udev"),
        ("it is kept for the next boot, and changes nothing before that", "reboot: m1 [reboot]", "only after a reboot, which leaves what is on its disks",
         "waits for the configuration to be staged", "It is not drained before the reboot: its pods are stopped with it."), ("[wipe",)),
    "a change without leave to restart": Read(
        lambda: _drift("udev", allow_reboot=False), ("it is kept for the next boot", "this run may not reboot", "allow_reboot: true"), ("reboot: m1",)),
    "the removal of a control plane": Read(
        lambda: removal.decide_removal(removal_case.alive_plane()).plan,
        ("leave etcd: cp1 [wipe, cannot be undone]", "its own copy of etcd's data is deleted, the others keep theirs",
         "reset machine: cp1 [wipe, cannot be undone]",
         "its configuration goes", "restarts into maintenance mode: wipes STATE, EPHEMERAL; stays: EFI on /dev/sda1, META on /dev/sda2",
         "disks without partitions are not touched", "delete record: cp1", "it is in maintenance mode then, and comes back as pending",
         "nobody looks for data that pods keep on its disks")),
    "the removal of a dead control plane": Read(
        lambda: removal.decide_removal(removal_case.silent_plane()).plan,
        ("remove etcd member: cp1 [cannot be undone]", "Should the machine come back, wipe it before it is used again"), ("[wipe", "[reboot", "reset machine")),
    "a reset alone": Read(
        _reset_alone, ("reset machine: w1 [wipe, cannot be undone]", "The record and the Kubernetes Node stay.", "A controller installs the machine again"),
        ("delete record",)),
    "a restore of etcd": Read(
        _restore, ("restore etcd: m1 at 10.0.0.1:50000 [cannot be undone]", "what Kubernetes was told since is gone, and what pods have on disks stays",
                   "given up are m2, m3", "Wipe it before it is switched on"), ("[wipe",)),
    "an adoption": Read(
        lambda: adoption_world.adopt(adoption_world.seen(adoption_world.plane(1), adoption_world.worker(4, "machine: {sysctls: {a: '1'}}"))).plan,
        ("it counts as bootstrapped, so no bootstrap is sent to it", "it is only written down, and nothing is sent to it before it is released",
         "what it has beside the records stays as it is (v1alpha1: machine.sysctls.a)", "the first look at it changes nothing",
         "waits for a reading made for it that shows no difference"), ("[wipe", "[reboot", "[drain")),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_the_lines_answer(read: Read) -> None:
    text = " ".join(line.strip() for line in plan_lines(read.plan(), check=True))
    assert "(check mode: nothing is done)" in text
    assert not [words for words in read.says if words not in text], text
    assert not [words for words in read.never if words in text], text
