# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""etcd's members as every other control plane tells them, and who of them answers healthy (design section 12)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from .._decide.etcd_words import EtcdView
from .._decide.following import is_member
from .._decide.hostnames import host_of
from .._decide.stale_member import left_behind
from .._model.credentials import Credentials
from .._model.errors import TalosError
from .._model.observations import Endpoint, EtcdMember, EtcdStatus
from .._model.observed import Observed, Present, Unknown
from .._model.ports import Ports
from .._model.records import Record
from .life_reads import unknown


@dataclass(frozen=True)
class _Told:
    """What one control plane said. `healthy`: the id of its own member where that is a voter that sees a leader, else ''."""

    at: Endpoint
    members: tuple[EtcdMember, ...]
    healthy: str


async def read_view(ports: Ports, endpoints: Sequence[Endpoint], credentials: Credentials | None, own: Endpoint | None,
                    machine: Record | None) -> Observed[EtcdView]:
    """Ask all of `endpoints` at once. Unknown where none answers or they disagree. `own`: where the machine itself answers in maintenance
    mode; whatever else its member's peer addresses name is asked too, so that nobody's living member passes for a dead one."""
    if credentials is None:
        return Unknown("SecretsUnavailable", "there are no credentials to ask a control plane with")
    given = credentials
    answers = await asyncio.gather(*(_ask(ports, endpoint, given) for endpoint in endpoints))
    told = [answer for answer in answers if isinstance(answer, _Told)]
    if not told:
        problem = next((answer for answer in answers if isinstance(answer, Unknown)), None)
        return Unknown("ControlPlaneUnreachable", f"no other control plane answers ({problem.message or problem.reason})" if problem is not None
                       else "no other control plane is known to be asked")
    if len({tuple(sorted((member.id, member.name, member.learner) for member in answer.members)) for answer in told}) > 1:
        return Unknown("ControlPlaneUnreachable", "the control planes list different members of etcd")
    healthy = {answer.healthy for answer in told if answer.healthy}
    if machine is not None:
        asked = {*endpoints, *([own] if own is not None else [])}
        port = own.port if own is not None else told[0].at.port
        left = left_behind(machine, told[0].members)
        hosts = {host_of(url) for member in (*left.own, *left.elsewhere, *left.renamed) for url in member.peer_urls}
        beside = await asyncio.gather(*(_status(ports, endpoint, given) for host in sorted(hosts - {""})
                                        if (endpoint := Endpoint(host, port)) not in asked))
        healthy |= {member for member in beside if member}
    return Present(EtcdView(told[0].members, frozenset(healthy), tuple(str(answer.at) for answer in told if answer.healthy)), str(told[0].at))


async def _ask(ports: Ports, endpoint: Endpoint, credentials: Credentials) -> _Told | Unknown:
    try:
        async with ports.nodes.authenticated(endpoint, credentials) as session:
            members = await session.etcd_members(local=False)
            try:
                status: Observed[EtcdStatus] = Present(await session.etcd_status())
            except TalosError as error:
                status = unknown(error)
            return _Told(endpoint, members, status.value.member_id if isinstance(status, Present) and is_member(status) else "")
    except TalosError as error:
        return unknown(error)


async def _status(ports: Ports, endpoint: Endpoint, credentials: Credentials) -> str:
    """The id of the member there where it answers healthy, else ''."""
    try:
        async with ports.nodes.authenticated(endpoint, credentials) as session:
            status = await session.etcd_status()
    except TalosError:
        return ""
    return status.member_id if is_member(Present(status)) else ""
