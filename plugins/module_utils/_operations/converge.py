# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A look at, and the steps of, a converged machine: read it, show its drift, bring it back (design sections 10, 11 and 13)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from .._decide.conditions import Status
from .._decide.convergence_drain import node_to_drain
from .._decide.convergence_status import with_applied, with_found
from .._decide.convergence_words import ApplyDrift, Found, Reboot
from .._decide.drain import REBOOT
from .._decide.lock import Disruption, disruption_of
from .._decide.no_answer import REJECTED, UNCONFIRMED, outcome_of, with_rejected
from .._machineconfig.masking import Mask
from .._machineconfig.shown import secrets_in
from .._model.addresses import parse_endpoint
from .._model.errors import LOCK_REASONS, TalosError
from .._model.machine import cluster_of
from .._model.moments import moment
from .._model.observations import NodePlace
from .._model.observed import Present
from .._model.outcome import MachineRow
from .._model.plan import Plan, Refusal, Step
from .._model.ports import Session
from .converge_reads import Looked, begin, observe, observe_on
from .disruption import announce, end_of, withdraw
from .draining import drain, give_up
from .lease import Held, held
from .machine_effects import Effects
from .pass_store import PassStore
from .provisioning_reads import Surroundings
from .rounds import Acted, Round

#: Rows under which a step that is called for no longer was carried out by somebody.
_DONE = frozenset({"11/converged", "11/starting", "11/evidence", "11/reboot-under-way", "11/apply"})
#: What Talos 1.12 and 1.13 say of a change that they take only with a reboot; a difference with secrets follows (Talos fact).
_NOT_AT_ONCE = "this config change can't be applied in immediate mode"


async def look(around: Surroundings, name: str, effects: Effects, in_silence: Callable[[str], Awaitable[Round | None]] | None = None) -> Round:
    """Observe and decide; what was found becomes status. Raises TalosError `RecordNotFound`.

    `in_silence` is asked about a machine that does not answer, with why, before that is written: it may be in maintenance mode (section 12).
    """
    looked, found = await _observed(around, name)
    fell_back = found.silent or found.unread
    if fell_back and in_silence is not None:
        known = await in_silence(found.message)
        if known is not None:
            return known
    now = around.ports.clock.now()
    machine = effects.status(looked.view.machine, lambda status: with_found(status, looked.seen, found, now))
    node = looked.seen.node
    stage = node.value.stage.stage if isinstance(node, Present) and not found.silent else str(machine.status.get("stage") or "")
    row = MachineRow(name, cluster_of(machine), stage, found.ready, found.reason, found.message)
    plan = Plan(found.steps, found.refusals, found.warnings)
    timing = around.timing
    return Round(name, cluster_of(machine), plan, row, timing.follow if found.soon else timing.reread, found.settled, silent=found.silent,
                 fell_back=fell_back, held=bool(found.refusals), carry=looked, differences=looked.shown)


async def _observed(around: Surroundings, name: str) -> tuple[Looked, Found]:
    """The observation; where a disruption stands open that concerns it, its end is looked for first."""
    looked = begin(around, name)
    open_one = disruption_of(looked.view.cluster)
    if open_one is not None and open_one.machine == name and await _over(around, looked):
        looked = begin(around, name)
    looked, found = await observe(around, looked)
    if any(wait.target for step in found.steps for wait in step.waits_for) and await _over(around, looked):
        looked, found = await observe(around, begin(around, name))
    if found.rule == "11/quorum":
        # Another run may have begun with a control plane while etcd was read: then it is waited for, and nothing is wrong.
        again = begin(around, name)
        if disruption_of(again.view.cluster) != disruption_of(looked.view.cluster):
            looked, found = await observe(around, again)
    return looked, found


async def _over(around: Surroundings, looked: Looked) -> bool:
    """Whether the disruption that stands open in the cluster is over, where it is time to look for that."""
    due = around.memory.evidence_is_due(cluster_of(looked.view.machine), around.ports.clock.monotonic(), around.timing.follow)
    return due and await end_of(around.ports, looked.view, around.timing, around.allow_loopback)


async def act(around: Surroundings, last: Round, step: Step, effects: Effects) -> Acted:
    """Carry out this very step, on readings made for it on the connection that it uses, or say why not."""
    if isinstance(around.ports.store, PassStore):
        # What is done is decided on the store itself, not on the listings of a pass.
        around = replace(around, ports=replace(around.ports, store=around.ports.store.inner))
    try:
        if not step.locked:
            return await _carry_out(around, last, step, effects, None)
        purpose = f"{'the reboot' if isinstance(step, Reboot) else 'a new configuration'} of {last.name}"
        async with held(around.ports, last.cluster, purpose, around.timing) as lease:
            return await _carry_out(around, last, step, effects, lease)
    except TalosError as error:
        return _not_done(step, "13/lock" if error.reason in LOCK_REASONS else "11/stopped", error.reason, error.message, error.hint, error)


def _not_done(step: Step, rule: str, reason: str, message: str, hint: str, error: TalosError | None = None) -> Acted:
    return Acted(False, Refusal(step.target, reason, message, hint, rule), error)


async def _carry_out(around: Surroundings, last: Round, step: Step, effects: Effects, lease: Held | None, drained: str = "") -> Acted:
    """`drained`: the Node that was drained for it."""
    looked = begin(around, last.name, fully=True)
    before = last.carry.seen.node if isinstance(last.carry, Looked) else None
    if not isinstance(before, Present) or looked.credentials is None or looked.endpoint is None:
        return _not_done(step, "11/changed", "RecordChanged", "The machine changed since it was looked at.", "It is looked at again.")
    async with around.ports.nodes.authenticated(parse_endpoint(before.value.at), looked.credentials) as session:
        looked, found = await observe_on(around, looked, session)
        now = next((one for one in found.steps if one.id == step.id), None)
        if now is None or now.waits_for:
            return _otherwise(step, found, now)
        node = node_to_drain(looked.seen) if isinstance(now, Reboot) and not drained else None
        if node is None:
            return await _send(around, looked, now, session, effects, lease, drained)
    if lease is None:
        raise ValueError("a reboot is under the lock")
    return await _drained(around, last, step, effects, lease, looked, node)


async def _drained(around: Surroundings, last: Round, step: Step, effects: Effects, lease: Held, looked: Looked, node: NodePlace) -> Acted:
    """The same after its Node was drained, on readings made then; the connection of before would have been idle for too long."""
    machine, cluster = looked.view.machine, looked.view.cluster
    if cluster is None:
        raise ValueError("a drain has its cluster")
    await drain(around.ports, cluster, machine, node, REBOOT, lease, around.timing)
    try:
        acted = await _carry_out(around, last, step, effects, lease, node.name)
    except TalosError:
        await give_up(around.ports, cluster, machine, node.name)
        raise
    if not acted.done:
        await give_up(around.ports, cluster, machine, node.name)
    return acted


async def _send(around: Surroundings, looked: Looked, now: Step, session: Session, effects: Effects, lease: Held | None, drained: str) -> Acted:
    if lease is not None:
        lease.confirm()  # who lost it has nothing to announce
    announced = _announce(around, looked, now, drained)
    try:
        if lease is not None:
            lease.confirm()
    except TalosError:
        _withdraw(around, looked, announced)
        raise
    if isinstance(now, Reboot):
        return await _reboot(around, looked, now, session, announced)
    if not isinstance(now, ApplyDrift):
        raise ValueError(f"no step of a converged machine: {now.action}")
    return await _apply(around, looked, now, session, effects, announced)


def _otherwise(step: Step, found: Found, now: Step | None) -> Acted:
    """The readings made for the step say something else: a refusal, that another run did it meanwhile, that it waits, or a change."""
    if found.rule in _DONE and not any(one.action == step.action for one in found.steps):
        return Acted(True)
    if found.refusals and now is None:
        return Acted(False, found.refusals[0])
    if now is not None:
        waits = ", ".join(f"{wait.target}: {wait.what}" if wait.target else wait.what for wait in now.waits_for)
        return _not_done(step, "13/waits", "OperationInProgress", f"It waits for something else first ({waits}).", "It is looked at again.")
    return _not_done(step, "11/changed", "RecordChanged", f"The machine changed since it was looked at: {found.message}", "It is looked at again.")


@dataclass(frozen=True)
class _Announced:
    """What was written before the send, and what of the same machine stood there before: that has not shown its end."""

    disruption: Disruption
    before: Disruption | None


def _announce(around: Surroundings, looked: Looked, step: Step, drained: str) -> _Announced | None:
    """Written before whatever is done under the lock, so that it outlives the lease."""
    cluster, node = looked.view.cluster, looked.seen.node
    if not step.locked or cluster is None or not isinstance(node, Present):
        return None
    kind = "reboot" if isinstance(step, Reboot) else "apply"
    boot = node.value.boot_id
    if kind == "reboot" and not isinstance(boot, Present):
        raise TalosError("CallFailed", "The boot id of the node cannot be read, so the end of a reboot could not be told.", "Run this again.")
    disruption = Disruption(looked.view.machine.name, kind, moment(around.ports.clock.now()), boot.value if isinstance(boot, Present) else "", drained)
    announce(around.ports, cluster, disruption)
    return _Announced(disruption, disruption_of(cluster))


def _withdraw(around: Surroundings, looked: Looked, announced: _Announced | None) -> None:
    cluster = looked.view.cluster
    if announced is None or cluster is None:
        return
    withdraw(around.ports, cluster, announced.disruption, announced.before)


async def _reboot(around: Surroundings, looked: Looked, step: Reboot, session: Session, announced: _Announced | None) -> Acted:
    around.ports.progress(f"{looked.view.machine.name}: rebooting it, since {step.why}")
    try:
        await session.reboot()
    except TalosError as error:
        if outcome_of(error.reason) == UNCONFIRMED and error.failure.code != "NOT_SENT":
            # Its boot id tells whether it heard.
            return Acted(True, error=error)
        _withdraw(around, looked, announced)
        return _not_done(step, "11/reboot-refused", error.reason, error.message, error.hint, error)
    return Acted(True)


async def _apply(around: Surroundings, looked: Looked, step: ApplyDrift, session: Session, effects: Effects,
                 announced: _Announced | None) -> Acted:
    machine, compared, wanted = looked.view.machine, looked.seen.compared, looked.seen.wanted
    if not isinstance(compared, Present) or not isinstance(wanted, Present):
        raise ValueError("a step follows from a comparison")
    around.ports.progress(f"{machine.name}: sending the configuration ({step.mode}): {step.why}")
    try:
        await session.apply(compared.value.text.encode(), step.mode)
    except TalosError as error:
        how = outcome_of(error.reason)
        if how != UNCONFIRMED or error.failure.code == "NOT_SENT":
            _withdraw(around, looked, announced)
        return _apply_failed(around, looked, step, error, effects)
    sent, rendered, sha256 = compared.value, wanted.value, compared.value.sha256
    after = effects.status(machine, lambda status: with_applied(status, sent, rendered))
    how_it_went = "for its next boot" if step.mode == "STAGED" else "at once"
    effects.event(after, "Normal", "ConfigApplied", f"Configuration {sha256[:12]}: the node accepted it {how_it_went}. {step.why}")
    return Acted(True)


def _apply_failed(around: Surroundings, looked: Looked, step: ApplyDrift, error: TalosError, effects: Effects) -> Acted:
    """Refused bytes, a change that it takes only with a reboot, a busy node, nothing sent, or no answer."""
    machine = looked.view.machine
    if outcome_of(error.reason) == REJECTED and _NOT_AT_ONCE in error.detail:
        around.memory.only_with_reboot(machine.name, step.config)
        # The rest of what the node says holds secrets.
        return _not_done(step, "11/not-at-once", "RebootRequired", "The node takes this change only with a reboot.", "It is staged at the next look.",
                         replace(error, detail=_NOT_AT_ONCE))
    told = _masked(looked, error)
    error = replace(error, detail=told)
    message = f"{error.message.rstrip('.')} ({told})." if told else error.message
    if outcome_of(error.reason) == REJECTED:
        def rejected(status: Status) -> Status:
            return with_rejected(status, step.config)

        effects.status(machine, rejected)
        return _not_done(step, "11/config-rejected", "ConfigRejected", message, "Correct the records; the same bytes are not tried again.", error)
    rule = "11/unconfirmed" if outcome_of(error.reason) == UNCONFIRMED else "11/not-sent"
    return _not_done(step, rule, error.reason, message, "It is looked at again.", error)


def _masked(looked: Looked, error: TalosError) -> str:
    """What the node says, with every secret hidden that it was sent or runs."""
    compared = looked.seen.compared
    hidden = secrets_in(compared.value.text) | secrets_in(looked.active) if isinstance(compared, Present) else frozenset()
    return Mask(hidden)(" ".join(error.detail.split()))[:500]
