# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removing the etcd member that a wiped control plane left behind (design section 12): under the lease, on readings made there."""

from __future__ import annotations

from dataclasses import replace

from .._decide.etcd_words import EtcdView, RemoveEtcdMember
from .._decide.lock import disruption_of, held_by_other
from .._decide.provisioning_row import refuse
from .._decide.provisioning_words import Provisioning, Refused, Remove, Send
from .._model.addresses import parse_endpoint
from .._model.errors import LOCK_REASONS, TalosError
from .._model.observed import Present
from .._model.plan import Refusal
from .disruption import announce, join_of, withdraw
from .lease import Held, held
from .machine_effects import Effects
from .node_reads import read_maintenance
from .provisioning_reads import Seen, Surroundings, as_booted, begin, read_etcd
from .rounds import Acted

#: The member may be gone although no answer came.
_LOST = frozenset({"TimedOut", "ConnectionLost", "CallFailed", "AnswerInvalid", "AnswerTooLarge"})


async def remove(around: Surroundings, seen: Seen, step: RemoveEtcdMember, effects: Effects) -> Acted:
    """Carry out exactly this removal, or say why not. A member that is gone already is done."""
    target = seen.observation.target
    try:
        async with held(around.ports, target.cluster, f"removing the stale etcd member of {target.name}", around.timing) as lease:
            return await _under(around, seen, step, effects, lease)
    except TalosError as error:
        rule = "13/lock" if error.reason in LOCK_REASONS else "12/stopped"
        return Acted(False, Refusal(target, error.reason, error.message, error.hint, rule), error)


async def _under(around: Surroundings, seen: Seen, step: RemoveEtcdMember, effects: Effects, lease: Held) -> Acted:
    fresh = begin(around, seen.job, seen.observation.beside, seen.observation.after)
    if fresh.endpoint is None or fresh.endpoint != seen.endpoint:
        return _stopped(seen, Refused(refuse(seen.observation, "12/moved", "RecordChanged", "The machine's address changed meanwhile.").refusal))
    observation = replace(fresh.observation, running=seen.observation.running, maintenance=await read_maintenance(around.ports, fresh.endpoint))
    observation = as_booted(around, fresh, observation)
    for reading in ("members", "etcd"):
        if getattr(seen.observation, reading) is not None:
            observation = await read_etcd(around, replace(fresh, observation=observation), observation, reading)
    verdict = seen.job.rules(observation, around.ports.clock.now())
    if isinstance(verdict, Send):
        return Acted(True)  # it is gone already
    if not isinstance(verdict, Remove) or verdict.step.id != step.id or verdict.step.waits_for or not isinstance(observation.etcd, Present):
        return _stopped(seen, verdict)
    return await _call(around, replace(fresh, observation=observation), step, effects, lease, observation.etcd.value)


def _stopped(seen: Seen, verdict: object) -> Acted:
    if isinstance(verdict, Refused):
        return Acted(False, verdict.refusal)
    return Acted(False, Refusal(seen.observation.target, "RecordChanged", "The machine, its record or etcd changed since the look.",
                                "The next look decides anew.", "12/changed"))


async def _call(around: Surroundings, seen: Seen, step: RemoveEtcdMember, effects: Effects, lease: Held, view: EtcdView) -> Acted:
    observation = seen.observation
    machine, cluster, credentials = observation.machine, observation.cluster, seen.credentials
    if machine is None or cluster is None or credentials is None or not view.through:
        return _stopped(seen, None)
    joins = None
    if not held_by_other(disruption_of(cluster), machine.name):
        joins = join_of(machine.name, around.ports.clock.now())
        lease.confirm()  # who lost it has nothing to announce
        announce(around.ports, cluster, joins)
    around.ports.progress(f"{machine.name}: removing its stale etcd member {step.member}")
    try:
        async with around.ports.nodes.authenticated(parse_endpoint(view.through[0]), credentials) as session:
            lease.confirm()
            await session.etcd_remove_member(step.member)
    except TalosError as error:
        if error.reason != "NotFound" and not (error.reason in _LOST and await _is_gone(around, seen, step)):
            if joins is not None and error.reason not in _LOST:
                withdraw(around.ports, cluster, joins)
            return Acted(False, _failed(observation, step, error), error)
    effects.event(machine, "Warning", "StaleEtcdMemberRemoved",
                  f"The disk of {machine.name} was wiped: its etcd member {step.member} was removed; it joins anew.")
    return Acted(True)


async def _is_gone(around: Surroundings, seen: Seen, step: RemoveEtcdMember) -> bool:
    """No answer came: does etcd still list it?"""
    again = await read_etcd(around, seen, seen.observation, "etcd")
    return isinstance(again.etcd, Present) and all(member.id != step.member for member in again.etcd.value.members)


def _failed(observation: Provisioning, step: RemoveEtcdMember, error: TalosError) -> Refusal:
    if error.reason in LOCK_REASONS:
        return Refusal(observation.target, error.reason, error.message, error.hint, "13/lost")
    return Refusal(observation.target, "StaleEtcdMember", f"The etcd member {step.member} of this machine could not be removed: {error.message}",
                   "The next look tries it again; when it stays, remove it with talos_machine_removal.", "12/removal-failed")
