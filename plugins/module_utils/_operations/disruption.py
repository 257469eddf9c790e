# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looking for the evidence that ends a recorded disruption (design section 13)."""

from __future__ import annotations

from dataclasses import replace

from .._decide.conditions import Status
from .._decide.following import is_member
from .._decide.lock import Disruption, Evidence, disruption_of, disruption_over
from .._model.credentials import Credentials
from .._model.errors import TalosError
from .._model.identity import Identity
from .._model.moments import moment
from .._model.observations import Endpoint
from .._model.observed import Observed, Present
from .._model.ports import Ports
from .._model.records import Record
from .._model.timing import Timing
from .life_reads import look, unknown


def announce(ports: Ports, cluster: Record, disruption: Disruption) -> Record:
    """Write the disruption before the disruptive send."""
    if ports.store is None:
        return cluster
    entry: dict[str, object] = {"machine": disruption.machine, "step": disruption.step, "time": disruption.time}
    if disruption.boot_id:
        entry["bootID"] = disruption.boot_id
    return ports.store.patch_status(cluster.ref, cluster.uid, lambda status: {**status, "disruption": entry})


def withdraw(ports: Ports, cluster: Record, disruption: Disruption) -> Record:
    """Take back a disruption that is over, or whose send never left; another one stays."""
    def change(status: Status) -> Status:
        found = status.get("disruption")
        same = isinstance(found, dict) and (found.get("machine"), found.get("time")) == (disruption.machine, disruption.time)
        return {key: value for key, value in status.items() if key != "disruption"} if same else status

    return ports.store.patch_status(cluster.ref, cluster.uid, change) if ports.store is not None else cluster


def join_of(machine: str, now: float) -> Disruption:
    """The disruption of a control plane that joins a bootstrapped cluster."""
    return Disruption(machine, "join", moment(now))


async def end_if_over(ports: Ports, cluster: Record, endpoint: Endpoint, credentials: Observed[Credentials], identity: Identity,
                      timing: Timing) -> Record:
    """Look at the disrupted machine, twice where its step asks for that, and clear the disruption where it is over."""
    disruption = disruption_of(cluster)
    if disruption is None or ports.store is None or ports.check:
        return cluster
    evidence = await _evidence(ports, disruption, endpoint, credentials, identity, timing)
    return withdraw(ports, cluster, disruption) if disruption_over(disruption, evidence) else cluster


async def _evidence(ports: Ports, disruption: Disruption, endpoint: Endpoint, credentials: Observed[Credentials], identity: Identity,
                    timing: Timing) -> Evidence:
    seen = await look(ports, endpoint, credentials, identity, timing, insecurely=disruption.step == "reset")
    evidence = Evidence(ports.clock.now(), maintenance=isinstance(seen.insecure, Present))
    answer = seen.answer
    if disruption.step == "reboot" and isinstance(credentials, Present):
        evidence = replace(evidence, boot_id=await _boot_id(ports, endpoint, credentials.value))
    if disruption.step in ("reset", "reboot") or not isinstance(answer, Present):
        return evidence
    first = answer.value.stage.ready and is_member(answer.value.etcd)
    if not first:
        return evidence
    await ports.clock.sleep(timing.follow)
    again = (await look(ports, endpoint, credentials, identity, timing, insecurely=False)).answer
    second = isinstance(again, Present) and again.value.stage.ready and is_member(again.value.etcd)
    return replace(evidence, at=ports.clock.now(), ready_twice=second, member=second)


async def _boot_id(ports: Ports, endpoint: Endpoint, credentials: Credentials) -> Observed[str]:
    try:
        async with ports.nodes.authenticated(endpoint, credentials) as session:
            return await session.boot_id()
    except TalosError as error:
        return unknown(error)
