# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A round of a converged machine that fell back to maintenance mode (design section 12)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from .._decide.approved import has_converged
from .._decide.etcd_words import RemoveEtcdMember
from .._decide.fallen_back import Told, told_of, with_told
from .._decide.provisioning_words import ApplyConfig, Follow, Refused, Remove, Send, Unchanged, Verdict
from .._decide.reprovision import decide_again, reading_of
from .._decide.same_machine import difference
from .._decide.wipe_evidence import with_reading
from .._model.errors import TalosError
from .._model.machine import cluster_of, identity_of, known_endpoints
from .._model.observations import Endpoint, NodeFacts
from .._model.observed import Observed, Present, Unknown
from .._model.outcome import MachineRow
from .._model.plan import Refusal, Step
from .._model.records import Record
from .machine_effects import Effects
from .member_removal import remove
from .node_reads import read_maintenance
from .provisioning_reads import Job, Seen, Surroundings, as_booted, begin, observe
from .record_reads import need_store, read_machine, rules_for
from .rounds import Acted, Round
from .send_config import send
from .stored import count_as_stored


@dataclass(frozen=True)
class FellBack:
    """What `act` needs of the look."""

    seen: Seen
    verdict: Verdict


async def look(around: Surroundings, name: str, effects: Effects, failure: str = "") -> Round | None:
    """Ask the maintenance API of a converged machine whose authenticated read failed (`failure`: how), and decide.

    None: nothing answers there as this machine, so what converging says of it stands. Raises TalosError `RecordNotFound`.
    """
    view = read_machine(need_store(around.ports), name)
    machine = view.machine
    found = await _probe(around, machine, view.cluster)
    sending = bool(machine.status.get("sending"))
    if found is None and not sending:
        _forget_wipe(machine, effects)
        return None
    endpoint, facts = found if found is not None else (None, Unknown("NotListening", "nothing answers in maintenance mode as this machine"))
    seen = begin(around, Job(name, render=True, endpoint=endpoint, rules=decide_again), beside=())
    observation = replace(seen.observation, running=Unknown("CurrentConfigUnavailable", failure), maintenance=facts)
    seen, verdict = await observe(around, replace(seen, observation=as_booted(around, seen, observation)))
    if isinstance(verdict, Follow):
        if verdict.settle:
            count_as_stored(machine, effects)
        return _round(around, seen, verdict, told_of(verdict))
    told = told_of(verdict)
    now = around.ports.clock.now()
    reading = reading_of(seen.observation)
    machine = effects.status(machine, lambda status: with_told(with_reading(status, reading, now), told, machine.generation, now))
    return _round(around, seen, verdict, told)


async def act(around: Surroundings, found: Round, step: Step, effects: Effects) -> Acted:
    """Remove the stale member, or send: exactly this step, on readings made for it under the lease."""
    carried = found.carry
    if not isinstance(carried, FellBack):
        raise ValueError("the round is not one of this file")
    seen = carried.seen
    try:
        if isinstance(step, RemoveEtcdMember):
            return await remove(around, seen, step, effects)
        if not isinstance(step, ApplyConfig):
            raise ValueError(f"no step of a machine that fell back: {step.action}")
        sent = await send(around, seen, step, effects)
    except TalosError as error:
        return Acted(False, Refusal(step.target, error.reason, error.message, error.hint, "12/stopped"), error)
    if sent.stored or isinstance(sent.verdict, (Follow, Unchanged)):
        return Acted(True)  # by this run, or by another one meanwhile
    return Acted(False, sent.verdict.refusal if isinstance(sent.verdict, Refused) else _waits(step, sent.verdict), sent.error)


def _waits(step: Step, verdict: Verdict | None) -> Refusal:
    """The readings made under the lease call for something else first."""
    waits = verdict.step.waits_for if isinstance(verdict, (Send, Remove)) else ()
    told = ", ".join(f"{wait.target}: {wait.what}" for wait in waits) or "the machine, its record or etcd changed since the look"
    return Refusal(step.target, "OperationInProgress", f"It waits for something else first ({told}).", "It is looked at again.", "13/waits")


async def _probe(around: Surroundings, machine: Record, cluster: Record | None) -> tuple[Endpoint, Observed[NodeFacts]] | None:
    """Where the machine answers in maintenance mode as itself, and what it says; None where it does not.

    Asked are only `spec.endpoint` and the address at which it was read with authentication (sections 6 and 10).
    """
    if not has_converged(machine):
        return None
    allowed = []
    for endpoint in known_endpoints(machine):
        try:
            rules_for(cluster, around.allow_loopback, endpoint)
        except TalosError:
            continue
        allowed.append(endpoint)
    answers = await asyncio.gather(*(_read(around, endpoint) for endpoint in allowed))
    identity = identity_of(machine)
    own = [(endpoint, facts) for endpoint, facts in zip(allowed, answers)
           if isinstance(facts, Present) and not difference(identity, facts.value.identity)]
    if not own:
        return None
    if len({facts.value.certificate.fingerprint for dummy, facts in own}) > 1:
        where = " and ".join(str(endpoint) for endpoint, dummy in own)
        return own[0][0], Unknown("TwinIdentity", f"Two nodes answer as this machine, at {where}.")
    return own[0]


async def _read(around: Surroundings, endpoint: Endpoint) -> Observed[NodeFacts]:
    """The insecure reading of an address, if the short probe finds the maintenance API there."""
    probe = await around.ports.nodes.probe(endpoint, around.timing.maintenance_probe)
    if probe.kind != "Maintenance":
        return Unknown(probe.reason or "NotListening", probe.message)
    return await read_maintenance(around.ports, endpoint)


def _forget_wipe(machine: Record, effects: Effects) -> None:
    """Whatever is no second reading clears the first."""
    if machine.status.get("wipeSeen"):
        effects.status(machine, lambda status: with_reading(status, None, effects.now()))


def _round(around: Surroundings, seen: Seen, verdict: Verdict, told: Told) -> Round:
    machine = seen.observation.machine
    name, cluster = seen.job.name, cluster_of(machine) if machine is not None else ""
    row = MachineRow(name, cluster, "maintenance", False, told.reason, told.message)
    after = 0.0 if isinstance(verdict, Follow) else around.timing.follow
    return Round(name, cluster, told.plan, row, after, told.settled, held=bool(told.plan.refusals), carry=FellBack(seen, verdict))
