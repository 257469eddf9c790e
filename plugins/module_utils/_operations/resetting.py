# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resetting a node under the lock, and waiting for the only proof of it: maintenance mode (design sections 13 and 14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .._decide.drain import REMOVAL
from .._decide.lock import Disruption, disruption_of
from .._decide.removal import Verdict, decide_removal
from .._decide.removal_words import AliveNode, DrainNode, EvacuateStorage, LeaveEtcd, Leaving, RemovalWish, ResetMachine
from .._decide.reset_partitions import SYSTEM_VOLUMES, left_over
from .._decide.same_machine import difference, other_machine
from .._model.errors import TalosError
from .._model.machine import cluster_of, dial_endpoint, identity_of, known_endpoints
from .._model.moments import moment
from .._model.observations import NodeFacts
from .._model.observed import Observed, Present, Unknown
from .._model.plan import Refusal, Step
from .._model.ports import Ports, Session
from .._model.records import CLUSTER, Record
from .._model.timing import Timing
from .disruption import announce, withdraw
from .draining import drain, give_up, mark_reset
from .lease import Held, held
from .node_reads import read_maintenance, told_boot_id
from .record_reads import MachineView, credentials_for
from .removal_reads import observe
from .teller import Teller

#: The node may have heard although no answer came.
LOST = frozenset({"TimedOut", "ConnectionLost", "CallFailed", "AnswerInvalid", "AnswerTooLarge"})
_SENT = (EvacuateStorage, DrainNode, LeaveEtcd, ResetMachine)


@dataclass(frozen=True)
class Went:
    """How it went: the steps that were done, and why not the rest."""

    done: tuple[str, ...] = ()
    refusal: Refusal | None = None
    error: TalosError | None = None


async def send_reset(ports: Ports, name: str, wish: RemovalWish, granted: tuple[Step, ...], timing: Timing, allow_loopback: bool) -> Went:
    """Drain, leave etcd and reset, on readings made under the lock, exactly the steps that were granted. Raises TalosError, also
    `DrainRequired` where the drain did not end in time: nothing was sent to the node then."""
    wanted = {step.id for step in granted}
    async with held(ports, granted[0].target.cluster, f"resetting {name}", timing) as lease:
        drained: tuple[str, ...] = ()
        if any(isinstance(step, DrainNode) for step in granted):
            seen = await observe(ports, name, wish, allow_loopback, strict=True)
            verdict = decide_removal(seen)
            if verdict.refusal is not None or any(step.id not in wanted for step in verdict.plan.steps if isinstance(step, _SENT)):
                return Went(refusal=_changed(verdict, granted[0]))
            if any(isinstance(step, DrainNode) for step in verdict.plan.steps):
                await _drain(ports, seen, lease, timing)
            drained = tuple(step.id for step in granted if isinstance(step, (EvacuateStorage, DrainNode)))
        seen = await observe(ports, name, replace(wish, skip_drain=True), allow_loopback, strict=True)
        verdict = decide_removal(seen)
        steps = [step for step in verdict.plan.steps if isinstance(step, (LeaveEtcd, ResetMachine))]
        if not steps or any(step.id not in wanted for step in steps) or not isinstance(seen.node, Present):
            await _give_up(ports, seen)
            return Went(refusal=_changed(verdict, granted[0]))
        went = await _carry_out(ports, seen, seen.node.value, steps, lease)
        if not went.done:
            await _give_up(ports, seen)
            return went
        return replace(went, done=(*drained, *went.done))


async def _drain(ports: Ports, seen: Leaving, lease: Held, timing: Timing) -> None:
    if seen.machine is None or seen.cluster is None or not isinstance(seen.hosting, Present):
        raise ValueError("a drain follows from what runs on the Node")
    await drain(ports, seen.cluster, seen.machine, seen.hosting.value.node, REMOVAL, lease, timing)


async def _give_up(ports: Ports, seen: Leaving) -> None:
    """Nothing was sent: its Node takes pods again."""
    if seen.machine is not None and seen.cluster is not None and isinstance(seen.hosting, Present) and seen.hosting.value.node.cordoned_at:
        await give_up(ports, seen.cluster, seen.machine, seen.hosting.value.node.name)


def _changed(verdict: Verdict, step: Step) -> Refusal:
    return verdict.refusal or Refusal(step.target, "RecordChanged", "The machine, its record or etcd changed since the plan was made.",
                                      "Run this again and read the new plan.", "14/changed")


async def _carry_out(ports: Ports, seen: Leaving, node: AliveNode, steps: Sequence[Step], lease: Held) -> Went:
    machine, cluster = seen.machine, seen.cluster
    if machine is None or cluster is None:
        raise ValueError("a reset under the lock has its records")
    credentials = credentials_for(ports, cluster_of(machine), cluster)
    if not isinstance(credentials, Present):
        raise TalosError("SecretsUnavailable", "There are no credentials for the node any more.", "Run this again.")
    if not isinstance(node.boot_id, Present):
        raise TalosError("CallFailed", "The boot id of the node cannot be read, so the end of a failed reset could not be told.", "Run this again.")
    disruption = Disruption(machine.name, "reset", moment(ports.clock.now()), node.boot_id.value)
    lease.confirm()  # who lost it has nothing to announce
    announce(ports, cluster, disruption)
    await mark_reset(ports, machine, seen.hosting)
    done: list[str] = []
    try:
        async with ports.nodes.authenticated(dial_endpoint(machine), credentials.value) as session:
            other = other_machine(identity_of(machine), await session.identity())
            if other:
                raise TalosError("EndpointIdentityMismatch", f"Another machine answers: {other}.", "Correct spec.endpoint.")
            for step in steps:
                lease.confirm()
                await _send(ports, machine, step, session)
                done.append(step.id)
    except TalosError as error:
        sent = len(done)
        if error.reason in LOST and error.failure.code != "NOT_SENT" and sent < len(steps):
            if isinstance(steps[sent], ResetMachine):
                return Went((*done, steps[sent].id), error=error)  # maintenance mode tells whether it heard
            return Went((*done, steps[sent].id), Refusal(
                steps[0].target, error.reason, f"{error.message} It is not known whether {machine.name} has left etcd.",
                "Run this again: it looks at the members first.", "14/leave-unconfirmed"), error)  # the disruption and the mark stay
        if not done:
            withdraw(ports, cluster, disruption)
        return Went(tuple(done), Refusal(steps[0].target, error.reason, error.message, error.hint, "14/not-sent"), error)
    return Went(tuple(done))


async def _send(ports: Ports, machine: Record, step: Step, session: Session) -> None:
    if isinstance(step, LeaveEtcd):
        ports.progress(f"{machine.name}: its member {step.member} leaves etcd")
        await session.etcd_leave()
    elif isinstance(step, ResetMachine):
        ports.progress(f"{machine.name}: resetting it: {step.why}")
        await session.reset(step.partitions)


async def wait_for_maintenance(ports: Ports, machine: Record, labels: tuple[str, ...], timing: Timing) -> Refusal | None:
    """None once the machine answers in maintenance mode without these partitions. The disruption ends with that."""
    cluster = ports.store.get(CLUSTER, cluster_of(machine)) if ports.store is not None else None
    if cluster is None:
        raise ValueError("a reset has its cluster")
    target = MachineView(machine, cluster, ()).target
    deadline, teller = ports.clock.monotonic() + timing.wait_for_maintenance, Teller(ports, machine.name)
    disruption = disruption_of(cluster)
    while True:
        facts = await _in_maintenance(ports, machine)
        if isinstance(facts, Present) and not difference(identity_of(machine), facts.value.identity):
            partitions = facts.value.partitions
            kept = left_over(labels or SYSTEM_VOLUMES, partitions.value) if isinstance(partitions, Present) else ()
            if kept:
                return Refusal(target, "ResetFailed", f"{machine.name} is in maintenance mode, and {', '.join(kept)} is still on its disk.",
                               "Look at the node's console; wipe the disk by hand.", "14/kept")
            if disruption is not None and disruption.machine == machine.name:
                withdraw(ports, cluster, disruption)
            return None
        boot = await _boot_id(ports, machine, cluster)
        if boot and disruption is not None and disruption.boot_id and boot != disruption.boot_id:
            return Refusal(target, "ResetFailed", f"{machine.name} restarted and kept its data: the reset failed after its OK.",
                           "Look at the node's console (leaving etcd may have failed), then run this again.", "14/restarted-unwiped")
        left = deadline - ports.clock.monotonic()
        if left <= 0:
            return Refusal(
                target, "ResetFailed", f"{machine.name} was told to reset and has not reached maintenance mode within {timing.wait_for_maintenance:g} s.",
                "Look at the node's console; send nothing else to it. It may have another address now: set spec.endpoint. Run this again to go on waiting.",
                "14/no-maintenance")
        teller(f"waiting for maintenance mode ({facts.message or facts.reason})" if isinstance(facts, Unknown) else "waiting for maintenance mode")
        await ports.clock.sleep(min(timing.follow, left))


async def _in_maintenance(ports: Ports, machine: Record) -> Observed[NodeFacts]:
    """What answers insecurely where the machine is dialled, or at its `spec.endpoint`; the machine itself where it is among them."""
    found: Observed[NodeFacts] = Unknown("NotListening", "it has no address")
    for endpoint in known_endpoints(machine):
        found = await read_maintenance(ports, endpoint)
        if isinstance(found, Present) and not difference(identity_of(machine), found.value.identity):
            break
    return found


async def _boot_id(ports: Ports, machine: Record, cluster: Record) -> str:
    return await told_boot_id(ports, dial_endpoint(machine), credentials_for(ports, cluster_of(machine), cluster), identity_of(machine))
