# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one gated send over the insecure API (design section 9, steps 9 and 10)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from .._decide.approved import has_converged, is_bootstrapped
from .._decide.lock import Disruption, disruption_of
from .._decide.no_answer import NOT_SENT, REJECTED, TRANSIENT, UNCONFIRMED, Sending, outcome_of, with_rejected, with_sending, without_sending
from .._decide.provisioning_row import refuse
from .._decide.provisioning_words import ApplyConfig, Follow, Need, Provisioning, Send, Unchanged, Verdict
from .._decide.reprovision_words import Resume
from .._machineconfig.masking import Mask
from .._model.errors import LOCK_REASONS, TalosError
from .._model.moments import moment
from .._model.observed import Present
from .._model.ports import Session
from .disruption import announce, join_of, withdraw
from .lease import Held, held
from .machine_effects import Effects
from .provisioning_reads import Seen, Surroundings, begin, observe, read_etcd
from .stored import count_as_stored, write_stored

#: How often the readings are made anew when the record changed, or the answer was lost, under our hands.
_ROUNDS = 4


@dataclass(frozen=True)
class Sent:
    """How a send ended. `stored`: the node accepted, or (`unanswered`) it counts as that; else `verdict` says why not."""

    stored: bool
    verdict: Verdict | None = None
    warnings: tuple[str, ...] = ()
    error: TalosError | None = None
    unanswered: bool = False


class _Again(Exception):
    """Observe anew before anything else; `pause` seconds before that."""

    def __init__(self, pause: float = 0.0, error: TalosError | None = None) -> None:
        super().__init__()
        self.pause = pause
        self.error = error


async def send(around: Surroundings, seen: Seen, step: ApplyConfig, effects: Effects) -> Sent:
    """Carry out one ApplyConfig step: exactly this one, on readings made for it, or say why not."""
    error: TalosError | None = None
    for unused in range(_ROUNDS):
        try:
            return await _round(around, seen, step, effects)
        except TalosError as refused:
            rule = "13/lock" if refused.reason in LOCK_REASONS else "9/10-stopped"
            return Sent(False, refuse(seen.observation, rule, refused.reason, refused.message, refused.hint), error=refused)
        except _Again as again:
            error = again.error or error
            if again.pause:
                around.ports.progress(f"{seen.job.label}: no answer came; looking at the node in {again.pause:.0f} s")
                await around.ports.clock.sleep(again.pause)
            seen, verdict = await observe(around, begin(around, seen.job, seen.observation.beside, seen.observation.after))
            if not isinstance(verdict, Send) or verdict.step.id != step.id:
                return _settled(seen, verdict, effects, error)
    return Sent(False, refuse(seen.observation, "9/10-restless", "RecordChanged",
                              "The record or the node changed each time that it was about to be sent to.", "Run this again."), error=error)


def _settled(seen: Seen, verdict: Verdict, effects: Effects, error: TalosError | None) -> Sent:
    """What a new observation said instead of the same send."""
    machine = seen.observation.machine
    if isinstance(verdict, Follow) and verdict.settle and machine is not None:
        count_as_stored(machine, effects)
        return Sent(True, unanswered=True)
    if isinstance(verdict, (Follow, Unchanged)) and error is not None:
        return Sent(True, unanswered=True)
    return Sent(False, verdict, error=error)


@asynccontextmanager
async def _lock(around: Surroundings, seen: Seen, step: ApplyConfig) -> AsyncIterator[Held | None]:
    """Control planes take the lock of their cluster for the send only; without a store there is none to take."""
    observation = seen.observation
    if step.role != "controlplane" or observation.machine is None:
        yield None
        return
    async with held(around.ports, observation.target.cluster, f"provisioning {observation.target.name}", around.timing) as lease:
        yield lease


async def _round(around: Surroundings, seen: Seen, step: ApplyConfig, effects: Effects) -> Sent:
    async with _lock(around, seen, step) as lease:
        fresh = begin(around, seen.job, seen.observation.beside, seen.observation.after)
        fresh = replace(fresh, observation=replace(fresh.observation, running=seen.observation.running))
        endpoint = fresh.endpoint
        if endpoint is None or endpoint != seen.endpoint:
            raise _Again()
        for reading in ("members", "etcd"):
            if lease is not None and getattr(seen.observation, reading) is not None:
                fresh = replace(fresh, observation=await read_etcd(around, fresh, fresh.observation, reading))
        try:
            async with around.ports.nodes.maintenance(endpoint, step.fingerprint) as session:
                return await _on_connection(around, fresh, step, effects, lease, session)
        except TalosError as error:
            raise _Again(error=error) from error


async def _on_connection(around: Surroundings, seen: Seen, step: ApplyConfig, effects: Effects, lease: Held | None, session: Session) -> Sent:
    """The identity again on the very connection, the decision again on it, `sending`, then the bytes."""
    facts = await session.facts()
    observation = replace(seen.observation, maintenance=Present(facts, str(session.endpoint)))
    now = around.ports.clock.now()
    verdict = seen.job.rules(observation, now)
    if isinstance(verdict, Need):
        raise _Again()
    if not isinstance(verdict, Send) or verdict.step.id != step.id or verdict.step.waits_for:
        return Sent(False, verdict)
    config, machine = observation.config, observation.machine
    joins: Disruption | None = None
    before = machine.status.get("sending") if machine is not None else None
    if not isinstance(config, Present) or not facts.certificate.matches(session.certificate.fingerprint):
        return Sent(False, refuse(observation, "9/10-connection", "MaintenanceIdentityChanged",
                                  "The certificate changed while the node was read.", "Run this again."))
    if machine is not None:
        sending = Sending(step.config, session.certificate.fingerprint, moment(now), verdict.attempt, around.ports.holder)
        try:
            machine = effects.status(machine, lambda status: with_sending(status, sending), expect=True)
        except TalosError as error:
            if error.reason == "RecordChanged":
                raise _Again() from error
            return Sent(False, refuse(observation, "9/10-sending", error.reason, error.message, error.hint), error=error)
        try:
            joins = _announce(around, observation, step, lease, now)
            if lease is not None:
                lease.confirm()
        except TalosError as error:
            effects.status(machine, lambda status: without_sending(status, around.ports.holder, before))
            _withdraw(around, observation, joins)
            return Sent(False, refuse(observation, "13/lost", error.reason, error.message, error.hint), error=error)
    around.ports.progress(f"{seen.job.label}: sending the configuration")
    try:
        reply = await session.apply(config.value.raw, "AUTO")
    except TalosError as error:
        if outcome_of(error.reason) != UNCONFIRMED:
            _withdraw(around, observation, joins)
        return _failed(around, replace(seen, observation=replace(observation, machine=machine)), error, effects, before)
    if machine is not None:
        write_stored(machine, step.config, effects)
    return Sent(True, warnings=reply.warnings)


def _announce(around: Surroundings, observation: Provisioning, step: ApplyConfig, lease: Held | None, now: float) -> Disruption | None:
    """A control plane that joins a bootstrapped cluster: nothing disruptive begins elsewhere before it has joined (section 13). One that
    kept its data joins nothing, and its coming back is what the others may be waiting for."""
    if lease is None or observation.cluster is None or observation.machine is None or isinstance(step, Resume):
        return None
    if not (is_bootstrapped(observation.cluster) or has_converged(observation.machine)):
        return None
    standing = disruption_of(observation.cluster)
    if standing is not None and standing.machine == observation.machine.name:
        return None  # since its stale member was removed, or since an earlier attempt; it ends with what it shows, whatever becomes of this send
    disruption = join_of(observation.machine.name, now)
    lease.confirm()  # who lost it has nothing to announce
    announce(around.ports, observation.cluster, disruption)
    return disruption


def _withdraw(around: Surroundings, observation: Provisioning, disruption: Disruption | None) -> None:
    if disruption is not None and observation.cluster is not None:
        withdraw(around.ports, observation.cluster, disruption)


def _failed(around: Surroundings, seen: Seen, error: TalosError, effects: Effects, before: object) -> Sent:
    """An apply that raised: refused bytes, a node that is busy, nothing sent, or no answer. `before` is the `sending` of an earlier send."""
    observation, machine = seen.observation, seen.observation.machine
    config = observation.config
    mask = Mask(config.value.secrets) if isinstance(config, Present) else Mask(())
    told = mask(" ".join(error.detail.split()))[:500]
    message = f"{error.message.rstrip('.')} ({told})." if told else error.message
    how = outcome_of(error.reason)
    if how == REJECTED:
        refusal = refuse(observation, "9/10-config-rejected", "ConfigRejected", message,
                         "Correct the configuration; the same bytes are not tried again.")
        if machine is not None and isinstance(config, Present):
            digest = config.value.sha256
            effects.status(machine, lambda status: with_rejected(status, digest))
        return Sent(False, refusal, error=error)
    if how in (TRANSIENT, NOT_SENT):
        if machine is not None:
            effects.status(machine, lambda status: without_sending(status, around.ports.holder, before))
        hint = "Another apply is in progress; run this again." if how == TRANSIENT else error.hint
        return Sent(False, refuse(observation, "9/10-busy" if how == TRANSIENT else "9/10-not-sent", error.reason, message, hint), error=error)
    if machine is None:
        return Sent(False, refuse(observation, "9/10-unconfirmed", "SendingUnconfirmed",
                                  f"The configuration was sent and no answer came: {message}",
                                  "Look at the node with talos_stage before anything is sent again."), error=error)
    raise _Again(around.timing.follow, error)
