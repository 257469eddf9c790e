# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of editing a configuration patch: what a person wants, what was read, and the steps (design sections 3 and 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from .._machineconfig.patch_check import PatchEffect
from .._model.plan import Step
from .._model.records import CONFIG_PATCH, Broken, Json, Record


@dataclass(frozen=True)
class PatchEdit:
    """What a person wants of a patch. settings: a part of the spec in its own spelling. text: the file that the documents came from,
    so that what is wrong is told with its line; source: its name.
    """

    name: str
    settings: Mapping[str, Json] = field(default_factory=dict, repr=False)
    text: bytes | None = field(default=None, repr=False)
    source: str = ""
    absent: bool = False
    allow_delete: bool = False
    override: bool = False


@dataclass(frozen=True)
class PatchSeen:
    """What was read. cluster: the one that the patch is for. machines: all of that cluster. effects: what the patch would do to the
    approved machines that it selects; None where that was not checked, and then `unchecked` says why.
    """

    patch: Record | None
    broken: Broken | None = None
    cluster: Record | None = None
    machines: Sequence[Record] = ()
    effects: tuple[PatchEffect, ...] | None = None
    unchecked: str = ""


@dataclass(frozen=True)
class CreatePatch(Step):
    """Write the record of a new patch."""

    action: ClassVar[str] = "CreatePatch"

    spec: Mapping[str, Json] = field(default_factory=dict, repr=False, metadata={"plan": "digest"})


@dataclass(frozen=True)
class EditPatch(Step):
    """Change the record of a patch."""

    action: ClassVar[str] = "EditPatch"

    spec: Mapping[str, Json] = field(default_factory=dict, repr=False, metadata={"plan": "digest"})
    before: Record = field(default_factory=lambda: Record(CONFIG_PATCH, ""), repr=False, metadata={"plan": "skip"})
    override: bool = field(default=False, metadata={"plan": "skip"})


@dataclass(frozen=True)
class DeletePatch(Step):
    """Delete the record of a patch; what it said is no drift any more."""

    action: ClassVar[str] = "DeletePatch"
    reversible: ClassVar[bool] = False

    before: Record = field(default_factory=lambda: Record(CONFIG_PATCH, ""), repr=False, metadata={"plan": "skip"})
