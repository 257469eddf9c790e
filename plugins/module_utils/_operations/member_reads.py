# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looking whether an etcd member is dead: at its own address, and through a sibling (design section 14)."""

from __future__ import annotations

from collections.abc import Sequence

from .._decide.member_death import SILENCES, sees_leader
from .._decide.removal_words import MemberLook
from .._model.addresses import literal, parse_endpoint
from .._model.credentials import Credentials
from .._model.dialling import DialRules
from .._model.errors import TalosError
from .._model.observations import Endpoint, EtcdStatus
from .._model.observed import Absent, Observed, Present
from .._model.ports import Ports
from .life_reads import unknown
from .probing import each


async def look_at_member(ports: Ports, places: Sequence[Endpoint], through: Sequence[str], credentials: Credentials, rules: DialRules,
                         node_ready: Observed[bool]) -> MemberLook:
    """Both calls for whoever is at these places. `through`: healthy control planes; the first that goes on answering itself counts."""
    direct = await each(places, lambda place: _direct(ports, place, credentials, rules))
    # Talos hands a call on to an address only; that it cannot look up a name says nothing of a machine.
    proxied = await each([place for place in places if literal(place.host) is not None], lambda place: _proxied(ports, place, through, credentials))
    return MemberLook(_worst(direct), _worst(proxied), node_ready)


async def _proxied(ports: Ports, place: Endpoint, through: Sequence[str], credentials: Credentials) -> Observed[EtcdStatus]:
    for sibling in through:
        found = await _through(ports, parse_endpoint(sibling), place.host, credentials)
        if not isinstance(found, Absent):
            return found
    return Absent("no other control plane could ask")


def _worst(found: Sequence[Observed[EtcdStatus]]) -> Observed[EtcdStatus]:
    """The reading that says most against a death: an answer with a leader, else any answer, else what says least of the machine."""
    for status in found:
        if sees_leader(status):
            return status
    present = next((status for status in found if isinstance(status, Present)), None)
    if present is not None:
        return present
    return next((status for status in found if not isinstance(status, Present) and getattr(status, "reason", "") not in SILENCES),
                found[0] if found else Absent("not asked"))


async def _direct(ports: Ports, place: Endpoint, credentials: Credentials, rules: DialRules) -> Observed[EtcdStatus]:
    try:
        rules.check(place.host)
        async with ports.nodes.authenticated(place, credentials) as session:
            return Present(await session.etcd_status(), str(place))
    except TalosError as error:
        return unknown(error)


async def _through(ports: Ports, sibling: Endpoint, host: str, credentials: Credentials) -> Observed[EtcdStatus]:
    """Absent where the sibling itself does not go on answering: its silence says nothing of anybody else."""
    try:
        async with ports.nodes.authenticated(sibling, credentials) as session:
            try:
                return Present(await session.etcd_status(node=host), f"{host} through {sibling}")
            except TalosError as error:
                failed = unknown(error)
            await session.etcd_status()
            return failed
    except TalosError:
        return Absent(f"{sibling} does not answer")
