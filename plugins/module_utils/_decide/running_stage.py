# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Talos's stages of a node that was configured, as reasons (design section 3)."""

from __future__ import annotations

from .._model.observations import StageReading

_REASONS = {
    "installing": "NodeInstalling", "rebooting": "NodeRebooting", "shuttingDown": "NodeRebooting", "resetting": "NodeRebooting",
    "maintenance": "AwaitingInstall", "running": "",
}
#: Stages in which a sequence runs that another call would disturb: a reboot takes over a reset, and nothing is wiped (Talos fact).
_BUSY = frozenset({"installing", "rebooting", "shuttingDown", "resetting", "upgrading"})


def reason_of_stage(stage: StageReading) -> str:
    """Why a node in that stage is not simply running; '' where it is."""
    if stage.unattended_install not in ("", "installed"):
        return "NodeInstalling"
    return _REASONS.get(stage.stage, "NodeStarting")


def busy(stage: StageReading) -> bool:
    """Whether nothing is sent to it now: it is on its way down, or being installed."""
    return stage.stage in _BUSY or stage.unattended_install not in ("", "installed")
