# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adopt a running cluster, or machines of a managed one, without one write to a node (design section 15)."""

from __future__ import annotations

import datetime
import hashlib
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from .._decide.adoption_told import document_of, told
from .._decide.adoption_words import AdoptCluster, Adoption, AdoptMachine, AdoptPatch, AdoptWish, KeepBundle, ReleaseMachine
from .._decide.cni_words import ChangeObject, CniWish, CreateObject
from .._decide.approved import is_bootstrapped
from .._machineconfig.authorities import check_bundle
from .._machineconfig.placeholder import placeholder_bundle
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.secrets import read_bundle
from .._model.errors import TalosError
from .._model.moments import moment
from .._model.observed import Present, Unknown
from .._model.outcome import Difference, MachineRow, Outcome
from .._model.plan import Plan, Refusal, Step
from .._model.ports import Gate, Ports, Store
from .._model.record_uid import record_uid
from .._model.records import BUNDLE, CLUSTER, MACHINE, Json, Record
from .._model.timing import Timing
from .adopt_network import AdoptedNetwork, with_network
from .adopt_reads import observe
from .adopt_release import Released, release
from .machine_rows import machine_row
from .record_reads import need_store
from .rendering import Renderer


@dataclass(frozen=True)
class Request:
    """What is to be adopted. `bundle`: content of a secrets bundle that is brought, `source` its name for messages."""

    wish: AdoptWish
    bundle: bytes | None = field(default=None, repr=False)
    source: str = ""
    allow_loopback: bool = False
    timing: Timing = field(default_factory=Timing)
    network: CniWish = field(default_factory=CniWish)


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read, decide, show the plan, write the records, and let go what shows no difference."""
    store = need_store(ports)
    wish = _with_bundle(replace(request.wish, actor=ports.actor, allow_loopback=request.allow_loopback), request, ports)
    if not wish.addresses:
        raise TalosError("InvalidInput", "No address is named.", "Give addresses: those of all nodes of the cluster, or of the machines to add.")
    seen = await observe(wish, ports, store, request.allow_loopback)
    found, network = await with_network(request.network, wish, seen, ports)
    granted = gate(found.plan)
    refusal = _refusing(found.plan)
    if refusal is not None:
        return _outcome(found, (), (), ports, network, refused=refusal)
    return await _act(request, ports, store, found, granted, network)


def _with_bundle(wish: AdoptWish, request: Request, ports: Ports) -> AdoptWish:
    if request.bundle is None:
        return wish
    try:
        bundle = read_bundle(request.bundle, source=request.source)
    except ConfigProblem as error:
        return replace(wish, imported=Unknown(error.reason, error.message, error.hint))
    now = datetime.datetime.fromtimestamp(ports.clock.now(), datetime.timezone.utc)
    return replace(wish, imported=Present(bundle, request.source), faults=tuple(finding.message for finding in check_bundle(bundle, now)))


def _refusing(plan: Plan) -> Refusal | None:
    """The refusal of the whole run; what only blocks a machine names it, and the others go on."""
    return next((one for one in plan.refusals if _of_the_run(one) or not plan.steps and one.rule not in _OF_A_MACHINE), None)


def _of_the_run(refusal: Refusal) -> bool:
    return refusal.rule in _OF_THE_RUN or refusal.rule.startswith("15/cni-")


_OF_A_MACHINE = frozenset({
    "15/secret", "15/not-representable", "15/not-modelled", "15/registries", "15/authority", "15/staged", "15/address", "15/held-drifted"})
_OF_THE_RUN = frozenset({"15/consent", "15/all-blocked", "15/record-invalid", "15/name-taken"})


async def _act(request: Request, ports: Ports, store: Store, found: Adoption, granted: Plan, network: AdoptedNetwork) -> Outcome:
    executed: list[str] = []
    released: list[Released] = []
    renderer = Renderer(store)
    held_plane = ""
    async with AsyncExitStack() as stack:
        writer = network.writer(ports, request.timing, stack)
        for step in granted.steps:
            if isinstance(step, ReleaseMachine):
                if not released:
                    _bootstrapped(store, found, ports)  # nobody is let go into a cluster that looks as if it never began
                if held_plane and any(wait.target for wait in step.waits_for):
                    released.append(Released(step.target.name, None, f"It waits for {held_plane}, a control plane that is still held."))
                    continue
                ports.progress(f"{step.target.name}: looking once more before it is let go")
                one = await release(step, renderer, ports, store, request.allow_loopback)
                released.append(one)
                if one.done:
                    executed.append(step.id)
                elif one.control_plane:
                    held_plane = one.name
                continue
            if writer is not None and isinstance(step, (CreateObject, ChangeObject)):
                await writer.write(step)
            else:
                _write(step, store, ports)
            executed.append(step.id)
    if granted.steps and not ports.check:
        _bootstrapped(store, found, ports)
    return _outcome(found, tuple(executed), tuple(released), ports, network)


def _write(step: Step, store: Store, ports: Ports) -> None:
    if isinstance(step, KeepBundle) and step.bundle is not None:
        store.write_bundle(step.target.name, step.bundle.text().encode())
    elif isinstance(step, AdoptCluster):
        store.create(step.record)
    elif isinstance(step, AdoptPatch):
        if step.before is None:
            store.create(step.record)
        else:
            store.update(step.before, step.record.spec, annotations=step.record.annotations)
    elif isinstance(step, AdoptMachine):
        _adopt(step, store)
        ports.progress(f"{step.target.name}: adopted, and held")


def _adopt(step: AdoptMachine, store: Store) -> None:
    """The hold is there before the approval is: a controller that runs beside never sees one without the other."""
    record, before = step.record, step.before
    if before is None:
        before = store.create(replace(record, spec={**record.spec, "approvalState": "pending"}))
    status = dict(record.status)
    uid = before.uid
    store.patch_status(record.ref, uid, lambda old: {**status, **({"recordUID": old["recordUID"]} if "recordUID" in old else {})})
    current = store.get(MACHINE, record.name)
    if current is None:
        raise TalosError("RecordChanged", f"The record of {record.name} is gone.", "Run this again.")
    store.update(replace(before, resource_version=current.resource_version) if before.spec == current.spec else before, record.spec)


def _bootstrapped(store: Store, found: Adoption, ports: Ports) -> None:
    """A cluster whose record was there before counts as bootstrapped, too."""
    if found.cluster is None:
        return
    cluster = store.get(CLUSTER, found.cluster.name)
    if cluster is not None and not is_bootstrapped(cluster):
        now = moment(ports.clock.now())
        store.patch_status(cluster.ref, cluster.uid, lambda status: {**status, "bootstrappedAt": now})


def _outcome(found: Adoption, executed: tuple[str, ...], released: tuple[Released, ...], ports: Ports, network: AdoptedNetwork,
             refused: Refusal | None = None) -> Outcome:
    plan, late = found.plan, tuple(one.refusal for one in released if one.refusal is not None)
    for refusal in late:
        plan = plan.refused(refusal)
    blocked = sorted({str(one.target) for one in plan.refusals if not _of_the_run(one)} - {found.cluster.name if found.cluster is not None else ""})
    wrote = {step.target.name for step in plan.steps if step.id in executed}
    extra: dict[str, Json] = {"adoption": told(found, {one.name for one in released if one.done}), "network": network.told,
                              "records": [document_of(step) for step in plan.steps if _is_record(step)]}
    would_be = _would_be(plan, ports) if ports.check and refused is None else ()
    message = f"{refused.message} {refused.hint}".strip() if refused is not None else _message(found, blocked)
    return Outcome(
        plan=plan, executed=executed, machines=_rows(found, ports, wrote, released), blocked=tuple(blocked),
        unreachable=tuple(address for address, dummy in found.silent), refused=refused is not None,
        reason=refused.reason if refused is not None else "", message=message,
        waiting_for=tuple(f"{one.name}: {one.why}" for one in released if one.why), differences=(*_differences(plan), *network.differences), would_be=would_be,
        events=tuple(event for one in released for event in one.events), extra=extra)


def _is_record(step: Step) -> bool:
    return isinstance(step, (AdoptCluster, AdoptPatch, AdoptMachine))


def _message(found: Adoption, blocked: list[str]) -> str:
    if found.plan.steps:
        return ""
    held = [member.name for member in found.members if not member.blocked]
    silent = [address for address, dummy in found.silent]
    left = [f"{', '.join(names)} {what}" for names, what in ((blocked, "blocked"), (held, "held"), (silent, "not read")) if names]
    return f"Nothing to adopt: {'; '.join(left)}." if left else "Every machine is adopted already."


def _rows(found: Adoption, ports: Ports, wrote: set[str], released: tuple[Released, ...]) -> tuple[MachineRow, ...]:
    rows = []
    for member in found.members:
        record = ports.store.get(MACHINE, member.name) if ports.store is not None else None
        if record is not None:
            rows.append(machine_row(record, changed=member.name in wrote))
        else:
            why = member.blocked[0].sentence if member.blocked else "It would be adopted."
            rows.append(MachineRow(member.name, found.plan.steps[0].target.cluster if found.plan.steps else "", "", False,
                                   member.blocked[0].reason if member.blocked else "AdoptionHeld", why))
    return tuple(rows)


def _would_be(plan: Plan, ports: Ports) -> tuple[Record, ...]:
    """For the later tasks of a check run; the secrets as a placeholder, since no key goes into a temporary file."""
    year = datetime.datetime.fromtimestamp(ports.clock.now(), datetime.timezone.utc).year
    found: list[Record] = []
    for step in plan.steps:
        if isinstance(step, KeepBundle):
            name = step.target.name
            found.append(Record(BUNDLE, name, {"text": placeholder_bundle(name, year).text()}, uid=hashlib.sha256(name.encode()).hexdigest()))
        elif isinstance(step, (AdoptCluster, AdoptPatch, AdoptMachine)):
            record = step.record
            found.append(record if record.uid else replace(record, uid=record_uid(record.kind, record.name, record.spec)))
    return tuple(found)


def _differences(plan: Plan) -> tuple[Difference, ...]:
    found = []
    for step in plan.steps:
        if isinstance(step, (AdoptCluster, AdoptPatch, AdoptMachine)):
            before = step.before if isinstance(step, (AdoptPatch, AdoptMachine)) else None
            spec: dict[str, Json] = dict(before.spec) if before is not None else {}
            found.append(Difference(spec, dict(step.record.spec), f"{step.record.kind}/{step.record.name}"))
    return tuple(found)
