# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the authenticated read of a node gives (design section 9). Apart from the other words, so that who only reads does not import them."""

from __future__ import annotations

from dataclasses import dataclass

from .._model.identity import Identity
from .._model.observations import StageReading


@dataclass(frozen=True)
class RunningNode:
    """What the authenticated read of a node gave. `config_sha256` is '' where no configuration could be read."""

    identity: Identity
    stage: StageReading
    config_sha256: str = ""
