# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looking for the evidence that ends a recorded disruption (design section 13)."""

from __future__ import annotations

from dataclasses import replace

from .._decide.approved import is_approved, is_control_plane
from .._decide.conditions import Status
from .._decide.following import Following, is_member
from .._decide.lock import Disruption, Evidence, disruption_of, disruption_over
from .._decide.same_machine import difference, other_machine
from .._model.credentials import Credentials
from .._model.errors import LOCK_REASONS, TalosError
from .._model.identity import Identity
from .._model.machine import cluster_of, identity_of
from .._model.moments import moment, seconds_of
from .._model.observations import Endpoint
from .._model.observed import Observed, Present
from .._model.ports import Ports
from .._model.records import Record
from .._model.timing import Timing
from .lease import held, taken_here
from .life_reads import look
from .node_reads import read_boot_id
from .node_cordon import take_back
from .record_reads import MachineView, address_of, credentials_for


def announce(ports: Ports, cluster: Record, disruption: Disruption) -> Record:
    """Write the disruption before the disruptive send. Raises TalosError `OperationInProgress` where another machine's stands, or one of this machine
    that `cluster` does not have: another run wrote it since, and what is under way must stay told. A drain is what the step was drained for."""
    seen = disruption_of(cluster)
    if ports.store is None:
        return cluster

    def change(status: Status) -> Status:
        there = status.get("disruption")
        if isinstance(there, dict) and (there.get("machine") != disruption.machine or not _known(there, seen, disruption)):
            raise TalosError("OperationInProgress", f"A disruptive step on {there.get('machine')} has not shown its end.", "Run this again.")
        return {**status, "disruption": _entry(disruption)}

    return ports.store.patch_status(cluster.ref, cluster.uid, change)


def _known(there: dict[str, object], *known: Disruption | None) -> bool:
    return there.get("step") == "drain" or any(one is not None and (there.get("step"), there.get("time")) == (one.step, one.time) for one in known)


def withdraw(ports: Ports, cluster: Record, disruption: Disruption, before: Disruption | None = None) -> Record:
    """Take back a disruption that is over, or whose send never left, and leave what of the machine stood `before` it; another one stays."""
    def change(status: Status) -> Status:
        found = status.get("disruption")
        if not isinstance(found, dict) or (found.get("machine"), found.get("time")) != (disruption.machine, disruption.time):
            return status
        rest = {key: value for key, value in status.items() if key != "disruption"}
        return rest if before is None else {**rest, "disruption": _entry(before)}

    return ports.store.patch_status(cluster.ref, cluster.uid, change) if ports.store is not None else cluster


def _entry(disruption: Disruption) -> dict[str, object]:
    """As the cluster's status has it."""
    entry: dict[str, object] = {"machine": disruption.machine, "step": disruption.step, "time": disruption.time}
    if disruption.boot_id:
        entry["bootID"] = disruption.boot_id
    if disruption.node:
        entry["node"] = disruption.node
    return entry


def join_of(machine: str, now: float) -> Disruption:
    """The disruption of a control plane that joins a bootstrapped cluster."""
    return Disruption(machine, "join", moment(now))


async def end_of(ports: Ports, view: MachineView, timing: Timing, allow_loopback: bool) -> bool:
    """Look at the machine that the cluster's status says is disrupted, and clear the disruption where it is over; whether it is.

    `view` is any machine's of the cluster. A disrupted machine whose record is gone stays for a person to clear.
    """
    disruption = disruption_of(view.cluster)
    if disruption is None or view.cluster is None or ports.check:
        return False
    machine = next((one for one in view.siblings if one.name == disruption.machine), None)
    if machine is None or not is_approved(machine):
        return False
    address = address_of(MachineView(machine, view.cluster, view.siblings), allow_loopback)
    if not isinstance(address, Present):
        return False
    credentials = credentials_for(ports, cluster_of(machine), view.cluster)
    after = await end_if_over(ports, view.cluster, address.value, credentials, identity_of(machine), timing, is_control_plane(machine))
    return disruption_of(after) is None


async def end_if_over(ports: Ports, cluster: Record, endpoint: Endpoint, credentials: Observed[Credentials], identity: Identity,
                      timing: Timing, control_plane: bool = False) -> Record:
    """Look at the disrupted machine, twice where its step asks for that, and clear the disruption where it is over."""
    disruption = disruption_of(cluster)
    if disruption is None or ports.store is None or ports.check:
        return cluster
    if disruption.step == "drain":
        return await _end_of_drain(ports, cluster, disruption, timing)
    evidence = await _evidence(ports, disruption, endpoint, credentials, identity, timing, control_plane)
    over = disruption_over(disruption, evidence, timing.follow_slow) and await _uncordoned(ports, cluster, disruption, timing)
    return withdraw(ports, cluster, disruption) if over else cluster


async def _end_of_drain(ports: Ports, cluster: Record, disruption: Disruption, timing: Timing) -> Record:
    """A drain ends with its run. One whose run is gone, so that the lock is free, is taken back."""
    if ports.store is None or taken_here(ports, cluster.name):
        return cluster
    try:
        async with held(ports, cluster.name, f"taking back the drain of {disruption.machine}", replace(timing, lock_wait=0.0)):
            latest = ports.store.get(cluster.kind, cluster.name)
            if latest is None or disruption_of(latest) != disruption or not await _uncordoned(ports, latest, disruption, timing):
                return latest or cluster
            return withdraw(ports, latest, disruption)
    except TalosError as error:
        if error.reason not in LOCK_REASONS:
            raise
        return cluster


async def _uncordoned(ports: Ports, cluster: Record, disruption: Disruption, timing: Timing) -> bool:
    """The Node that was cordoned for the step takes pods again. Where that cannot be done it is tried again for a while, then told."""
    why = await take_back(ports, cluster.name, disruption.node) if disruption.node else ""
    if not why:
        return True
    began = seconds_of(disruption.time)
    if began is not None and ports.clock.now() - began < timing.follow_slow:
        return False
    ports.progress(f"{disruption.machine}: Kubernetes Node {disruption.node} stays cordoned ({why}); uncordon it with kubectl uncordon")
    return True


async def _evidence(ports: Ports, disruption: Disruption, endpoint: Endpoint, credentials: Observed[Credentials], identity: Identity,
                    timing: Timing, control_plane: bool) -> Evidence:
    """What the machine itself shows; what another one shows at its address is no evidence."""
    seen = await look(ports, endpoint, credentials, identity, timing, insecurely=disruption.step == "reset")
    in_maintenance = isinstance(seen.insecure, Present) and not difference(identity, seen.insecure.value.identity)
    evidence = Evidence(ports.clock.now(), in_maintenance, control_plane=control_plane)
    if disruption.step == "reboot" and isinstance(credentials, Present):
        boot = await read_boot_id(ports, endpoint, credentials.value, identity)
        stayed = isinstance(boot, Present) and boot.value == disruption.boot_id and _runs(seen, identity)
        evidence = replace(evidence, boot_id=boot, stayed_up=stayed)
        if not control_plane or not disruption_over(disruption, replace(evidence, control_plane=False), timing.follow_slow):
            return evidence
    if disruption.step == "reset" or not _is_ready(seen, identity):
        return evidence
    await ports.clock.sleep(timing.follow)
    again = await look(ports, endpoint, credentials, identity, timing, insecurely=False)
    second = _is_ready(again, identity)
    return replace(evidence, at=ports.clock.now(), ready_twice=second, member=second)


def _is_ready(seen: Following, identity: Identity) -> bool:
    """The machine itself, ready, and its etcd a voting member that sees a leader."""
    answer = seen.answer
    return isinstance(answer, Present) and not other_machine(identity, answer.value.identity) and answer.value.stage.ready and is_member(answer.value.etcd)


def _runs(seen: Following, identity: Identity) -> bool:
    answer = seen.answer
    return isinstance(answer, Present) and not other_machine(identity, answer.value.identity) and answer.value.stage.stage == "running"
