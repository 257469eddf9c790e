# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node runs and what it keeps for its next boot, against what the records say (design sections 8 and 11).

Talos keeps two configurations: the active one, and the persistent one, which becomes active at the next boot. They differ after a
staged apply, and while somebody tries a configuration; after one that was only tried there is no persistent one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from .._machineconfig.compare import Difference, differences
from .._machineconfig.documents import Config
from .._machineconfig.drift import Drift, with_newer_images
from .._machineconfig.reboot import Effect, effect
from .._machineconfig.render import Rendered
from .._model.observed import Present
from .config_state import ConfigState, judge

#: Paths that name the CAs that a node accepts beside its own while they are being rotated.
_ACCEPTED = ("machine.acceptedCAs", "cluster.acceptedCAs")
_NAME = ("hostname", "machine.network.hostname")


@dataclass(frozen=True)
class Compared:
    """`state`: of what the node runs. `kept`: of what it keeps, None where that is the same. `text`, `sha256`: what would be sent, '' in sync: the
    render with the node's own newer images. `effect`: what changing the node from what it runs to that needs, None where nothing
    differs. `left`: the node keeps what would be sent and runs something else.
    `same_bytes`: it runs and keeps the very bytes of the render."""

    state: ConfigState
    kept: ConfigState | None = None
    text: str = field(default="", repr=False)
    sha256: str = ""
    effect: Effect | None = None
    left: bool = False
    same_bytes: bool = False

    @property
    def in_sync(self) -> bool:
        """The node runs and keeps what the records say, but for what is only ever shown."""
        return self.state.in_sync and (self.kept is None or self.kept.in_sync)

    @property
    def authority(self) -> tuple[Difference, ...]:
        """CAs, keys and tokens that differ, in what the node runs or keeps."""
        return tuple(one for state in (self.state, self.kept) if state is not None and state.drift is not None for one in state.drift.authority)

    @property
    def rotating(self) -> bool:
        """Whether all that differs of them is which CAs the node accepts beside its own: a rotation is under way."""
        found = self.authority
        return bool(found) and all(one.path.startswith(_ACCEPTED) for one in found)

    @property
    def needs_reboot(self) -> bool:
        return self.effect is not None and self.effect.needs_reboot

    @property
    def renames(self) -> bool:
        """Whether the host name is among what differs."""
        return any(one.path in _NAME for state in (self.state, self.kept) if state is not None for one in state.differences)


def same(sha256: str) -> Compared:
    """A node that runs and keeps the very bytes of the render, with this hash: there is nothing to read in them."""
    state = ConfigState("Converged", "The node runs what the records say.", "11/in-sync", True, Drift((), (), ()))
    return Compared(state, None, "", sha256, same_bytes=True)


def compare(wanted: Rendered, active: Config, persistent: Config | None, version: str) -> Compared:
    """`persistent` is None where the node keeps what it runs; `version` is the Talos version of the node."""
    state = judge(Present(wanted), Present(active), version)
    kept = judge(Present(wanted), Present(persistent), version) if persistent is not None else None
    if state.in_sync and (kept is None or kept.in_sync):
        return Compared(state, kept)
    send = with_newer_images(wanted.config, active)
    if persistent is not None:
        send = with_newer_images(send, persistent)
    text = send.text() if differences(send, wanted.config) else wanted.text
    needs = effect(active, send, version) if differences(send, active) else None
    left = persistent is not None and needs is not None and not differences(send, persistent)
    return Compared(state, kept, text, hashlib.sha256(text.encode()).hexdigest(), needs, left)
