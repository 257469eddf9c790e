# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one step of a report: its file."""

from __future__ import annotations

from typing import ClassVar

from dataclasses import dataclass

from .._model.plan import Step


@dataclass(frozen=True)
class WriteReport(Step):
    """Write the file that is the target's name."""

    action: ClassVar[str] = "WriteReport"
