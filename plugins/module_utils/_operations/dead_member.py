# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removing one dead member through the others: the list is read again right before, and etcd is asked again for as long as it settles."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .._decide.etcd_words import EtcdView, RemoveEtcdMember
from .._model.addresses import parse_endpoint
from .._model.credentials import Credentials
from .._model.errors import TalosError
from .._model.observed import Observed, Present
from .._model.plan import Refusal
from .._model.ports import Ports
from .._model.timing import Timing
from .lease import Held
from .resetting import LOST

#: etcd refuses every change of its members for 5 s after a voter has connected: asked again so often, in seconds.
_AGAIN = 2.0


@dataclass(frozen=True)
class Look:
    """A decision made under the lock: the step, or None with a refusal, or None without one where the member is gone."""

    step: RemoveEtcdMember | None
    etcd: Observed[EtcdView] | None
    credentials: Credentials | None
    refusal: Refusal | None = None


async def remove_member(ports: Ports, look: Callable[[], Awaitable[Look]], wanted: RemoveEtcdMember, lease: Held,
                        timing: Timing) -> Refusal | TalosError | None:
    """None once etcd lists the member no more. `wanted` without an id stands for whichever the look under the lock finds."""
    deadline = ports.clock.monotonic() + timing.apply
    while True:
        seen = await look()
        step = seen.step
        if step is None:
            return seen.refusal
        if wanted.member and step.member != wanted.member:
            return Refusal(wanted.target, "RecordChanged", f"It is another member now: {step.member} instead of {wanted.member}.",
                           "Run this again and read the new plan.", "14/changed")
        if not isinstance(seen.etcd, Present) or not seen.etcd.value.through or seen.credentials is None:
            raise ValueError("a removal is decided on what a healthy control plane told")
        ports.progress(f"{step.target}: removing etcd member {step.member} through {seen.etcd.value.through[0]}")
        try:
            async with ports.nodes.authenticated(parse_endpoint(seen.etcd.value.through[0]), seen.credentials) as session:
                lease.confirm()
                await session.etcd_remove_member(step.member)
            return None
        except TalosError as error:
            if error.reason == "NotFound":
                return None
            settles = error.reason in LOST or error.reason == "NodeRefused" and "unhealthy cluster" in error.detail
            if not settles or ports.clock.monotonic() >= deadline:
                return error
            await ports.clock.sleep(_AGAIN)
