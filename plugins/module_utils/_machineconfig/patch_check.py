# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a patch would do before it is written: whom it breaks, whom it changes, and who would reboot (design section 8).

Refused is a patch only where the render fails with it and not without it, so that a patch is never blamed for another cause.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .compare import Difference, differences
from .problem import ConfigProblem
from .reboot import Effect, effect
from .render import PatchRecord, Rendered, RenderInput, render


@dataclass(frozen=True)
class PatchEffect:
    """On one machine. problem: why it fails with the patch and not without it. broken_before: it fails without it, too.

    effect: what the change needs, None where it cannot be told.
    """

    machine: str
    problem: ConfigProblem | None = None
    broken_before: ConfigProblem | None = None
    effect: Effect | None = None
    changes: tuple[Difference, ...] = ()


def check_patch(patch: PatchRecord, machines: Iterable[tuple[RenderInput, str]]) -> tuple[PatchEffect, ...]:
    """One entry a machine that the patch selects. machines: the input without the patch (or with its old version, which is
    replaced), and the Talos version that the node runs.
    """
    return tuple(_one(patch, given, node) for given, node in machines if _selects(patch, given))


def _selects(patch: PatchRecord, given: RenderInput) -> bool:
    others = tuple(other for other in given.patches if other.name != patch.name)
    return patch in replace(given, patches=(*others, patch)).selected()


def _one(patch: PatchRecord, given: RenderInput, node_version: str) -> PatchEffect:
    before = replace(given, patches=tuple(other for other in given.patches if other.name != patch.name))
    wanted, failing = _attempt(replace(before, patches=(*before.patches, patch)))
    if wanted is None:
        dummy, broken = _attempt(before)
        return PatchEffect(given.machine_name, None if broken else failing, broken)
    current, broken = _attempt(given)
    if current is None:
        return PatchEffect(given.machine_name, None, broken)
    return PatchEffect(
        given.machine_name, None, None, effect(current.config, wanted.config, node_version or wanted.contract),
        differences(wanted.config, current.config),
    )


def _attempt(given: RenderInput) -> tuple[Rendered | None, ConfigProblem | None]:
    try:
        return render(given), None
    except ConfigProblem as error:
        return None, error
