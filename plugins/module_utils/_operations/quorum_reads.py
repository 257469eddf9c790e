# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the other control planes of a cluster say about etcd (design sections 4 and 12 to 14)."""

from __future__ import annotations

from .._decide.machine_edit_words import Etcd
from .._model.approval import approval_state
from .._model.dialling import dial_rules
from .._model.errors import TalosError
from .._model.machine import cluster_of, dial_endpoint
from .._model.observations import EtcdMember
from .._model.observed import Observed, Present, Unknown
from .._model.ports import Ports
from .._model.records import Record, text_at
from .probing import each
from .record_reads import credentials_for

Told = tuple[tuple[EtcdMember, ...], bool]


async def read_etcd(ports: Ports, machine: Record, cluster: Record | None, machines: tuple[Record, ...], allow_loopback: bool) -> Observed[Etcd]:
    """Members and health as every other approved control plane of the machine's cluster tells them; Unknown where none does."""
    others = [other for other in machines if other.name != machine.name and cluster_of(other) == cluster_of(machine)
              and approval_state(other) == "approved" and text_at(other.spec, "role") == "controlplane"]
    if not others:
        return Unknown("ControlPlaneUnreachable", "there is no other control plane to be asked")
    credentials = credentials_for(ports, cluster_of(machine), cluster)
    if not isinstance(credentials, Present):
        return Unknown("SecretsUnavailable", credentials.message if isinstance(credentials, Unknown) else "there are no credentials")
    given, rules = credentials.value, dial_rules(cluster.spec if cluster else None, allow_loopback)

    async def read(other: Record) -> Told | TalosError:
        try:
            endpoint = dial_endpoint(other)
            rules.check(endpoint.host)
            async with ports.nodes.authenticated(endpoint, given) as session:
                members = await session.etcd_members(local=False)
                status = await session.etcd_status()
        except TalosError as error:
            return error
        return members, bool(status.leader) and not status.learner

    answers = await each(others, read)
    told = [answer for answer in answers if not isinstance(answer, TalosError)]
    if not told:
        problem = next(answer for answer in answers if isinstance(answer, TalosError))
        return Unknown("ControlPlaneUnreachable", f"no other control plane answers ({problem.message})")
    lists = {tuple(sorted(member.id for member in members)) for members, dummy in told}
    if len(lists) > 1:
        return Unknown("ControlPlaneUnreachable", "the control planes list different members of etcd")
    return Present(Etcd(told[0][0], sum(1 for dummy, healthy in told if healthy)))
