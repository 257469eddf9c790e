# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two ways in which a machine that had joined is sent its configuration again (design section 12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .provisioning_words import ApplyConfig


@dataclass(frozen=True)
class Reinstall(ApplyConfig):
    """Send the configuration again to a machine whose disk was wiped: it installs as at first."""

    action: ClassVar[str] = "Reinstall"


@dataclass(frozen=True)
class Resume(ApplyConfig):
    """Send the configuration again to a machine that has lost only where it was kept: it installs nothing and goes on with its data."""

    action: ClassVar[str] = "Resume"
    disruption: ClassVar[str] = "none"
