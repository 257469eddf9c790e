# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a machine's configuration is like: it renders or not, and what the node runs is the same or not (design sections 8 and 11)."""

from __future__ import annotations

from dataclasses import dataclass

from .._machineconfig.compare import Difference
from .._machineconfig.documents import Config
from .._machineconfig.drift import Drift, drift, with_newer_images
from .._machineconfig.reboot import Effect, effect
from .._machineconfig.render import Rendered
from .._model.observed import Absent, Observed, Present, Unknown

#: Reasons under which nobody could look at the node.
SILENT = frozenset({"NodeUnreachable", "CurrentConfigUnavailable"})


@dataclass(frozen=True)
class ConfigState:
    """The answer for one machine. reason: of the closed list, `` where it was not compared and there is nothing wrong.

    compared: the node's configuration was read. drift and effect: what differs and what changing it needs, None where it was not compared.
    """

    reason: str
    message: str
    rule: str
    compared: bool = False
    drift: Drift | None = None
    effect: Effect | None = None

    @property
    def in_sync(self) -> bool:
        """Whether the node runs what the records say, but for what is only ever shown."""
        return self.drift is not None and self.drift.none

    @property
    def differences(self) -> tuple[Difference, ...]:
        """What would be sent."""
        return self.drift.apply if self.drift is not None else ()


def judge(wanted: Observed[Rendered], running: Observed[Config], node_version: str) -> ConfigState:
    """wanted: the render, or why there is none. running: what the node runs; Absent where it was not asked."""
    if not isinstance(wanted, Present):
        reason, message = (wanted.reason, f"{wanted.message} {wanted.source}".strip()) if isinstance(wanted, Unknown) else ("RenderFailed", "")
        return ConfigState(reason, message, "8/render-failed")
    if isinstance(running, Unknown):
        return ConfigState("CurrentConfigUnavailable" if running.reason not in SILENT else running.reason,
                           f"What the node runs cannot be read: {running.message}", "11/unreadable")
    if isinstance(running, Absent):
        return ConfigState("", "It renders.", "8/renders")
    found = drift(wanted.value.config, running.value)
    if found.authority:
        where = ", ".join(dict.fromkeys(difference.where for difference in found.authority))
        return ConfigState("AuthorityMismatch", f"CAs, keys or tokens differ from the secrets bundle ({where}): they are never sent; a rotation may "
                           "be under way, or the bundle is another cluster's.", "8/authority", True, found, None)
    newer = ""
    if found.newer_images:
        newer = f" Newer Kubernetes images on the node stay ({', '.join(difference.where for difference in found.newer_images)})."
    if found.none:
        return ConfigState("Converged", f"The node runs what the records say.{newer}", "11/in-sync" if not newer else "8/newer-images", True, found)
    needs = effect(running.value, with_newer_images(wanted.value.config, running.value), node_version)
    return ConfigState("Drifted", f"{_count(len(found.apply))} {'differs' if len(found.apply) == 1 else 'differ'}"
                       f"{', and changing that needs a reboot' if needs.needs_reboot else ''}.{newer}", "11/drift", True, found, needs)


def _count(number: int) -> str:
    return "1 path" if number == 1 else f"{number} paths"
