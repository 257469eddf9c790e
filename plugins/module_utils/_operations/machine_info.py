# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machine records with what the nodes say now (design section 9, "Reads by people"). Writes nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from .._decide.hardware_status import disk_status, link_status
from .._decide.machine_table import TableRow, table
from .._decide.moments_shown import age
from .._decide.record_twin import twin_of
from .._decide.telling import Doing, NodeNow, tell, unread
from .._decide.vanished import vanished_warnings
from .._model.approval import approval_state
from .._model.dialling import dial_rules
from .._model.errors import TalosError
from .._model.machine import cluster_of, dial_endpoint
from .._model.moments import moment
from .._model.observations import NodeFacts
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.outcome import Outcome
from .._model.plan import Plan, Target, Warn
from .._model.ports import Gate, Ports
from .._model.records import CLUSTER, MACHINE, Json, Record, condition_of, text_at
from .._model.timing import Timing
from .life_reads import unknown
from .machine_rows import machine_row
from .node_reads import read_maintenance
from .probing import each
from .record_reads import credentials_for, need_store, no_cluster, record_in
from .select import as_document, chosen


@dataclass(frozen=True)
class Request:
    """Which machines; `read_nodes` False shows the records alone. Without names, selection and cluster: all of the store."""

    machines: tuple[str, ...] = ()
    select: str = ""
    cluster: str = ""
    read_nodes: bool = True
    allow_loopback: bool = False
    timing: Timing = field(default_factory=Timing)


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read records and nodes. The plan has no step; it shows what could not be looked at."""
    store = need_store(ports)
    listing = store.list(MACHINE)
    recorded = store.list(CLUSTER)
    clusters = {record.name: record for record in recorded.records}
    names = chosen(listing.records, request.machines, request.select, request.cluster)
    if request.cluster and not names and request.cluster not in {*clusters, *(entry.name for entry in recorded.broken)}:
        raise no_cluster(store, request.cluster)
    records = [record_in(listing, name, "machine", store.description) for name in names]
    readings = await each(records, lambda machine: _now(request, ports, machine, clusters.get(cluster_of(machine))))
    shown: list[Json] = []
    silent: list[str] = []
    locked: list[tuple[str, str]] = []
    rows: list[TableRow] = []
    for machine, now in zip(records, readings):
        if unread(now.facts):
            locked.append((machine.name, now.facts.message if isinstance(now.facts, Unknown) else ""))
        elif isinstance(now.facts, Unknown):
            silent.append(machine.name)
        twin = twin_of(machine, listing.records)
        told = tell(machine, clusters.get(cluster_of(machine)), replace(now, twin=twin))
        rows.append(_table_row(machine, now, told, ports.clock.now()))
        doing: dict[str, Json] = dict(asdict(told))
        shown.append({**as_document(machine), "source": machine.source, "dial_endpoint": _address(machine), "node": _node(now), "doing": doing,
                      "same_machine_as": twin.name if twin is not None else ""})
    broken: list[Json] = [{"name": entry.name, "source": entry.source, "line": entry.line, "message": entry.message} for entry in listing.broken]
    counted = len(records)
    plan = Plan(warnings=(*_not_read(locked), *vanished_warnings(listing.vanished)))
    if plan.warnings:
        gate(plan)
    for line in table(rows):
        ports.progress(line)
    return Outcome(plan=plan, machines=tuple(machine_row(machine) for machine in records), unreachable=tuple(silent),
                   message=f"{counted} machine{'' if counted == 1 else 's'}.", extra={"records": shown, "broken": broken})


def _table_row(machine: Record, now: NodeNow, told: Doing, time: float) -> TableRow:
    ready = condition_of(machine, "Ready")
    facts = now.facts.value if isinstance(now.facts, Present) else None
    stage = facts.stage.value.stage if facts is not None and isinstance(facts.stage, Present) else text_at(machine.status, "stage")
    row = machine_row(machine)
    well = bool(ready and ready.status == "True") and not told.waiting_for
    return TableRow(machine.name, stage, age(told.since, time), row.reason, told.waiting_for, told.advice, well, told.what)


def _not_read(locked: list[tuple[str, str]]) -> tuple[Warn, ...]:
    """That nodes were not read for want of credentials, once for all of them."""
    if not locked:
        return ()
    names = ", ".join(name for name, dummy in locked[:8]) + (f" and {len(locked) - 8} more" if len(locked) > 8 else "")
    return (Warn(Target(), f"Not read with authentication: {names}. {locked[0][1]}".rstrip(), "9/reads-credentials"),)


async def _now(request: Request, ports: Ports, machine: Record, cluster: Record | None) -> NodeNow:
    """Authenticated; only an approved machine that never converged is asked without, and never another one."""
    if not request.read_nodes or approval_state(machine) != "approved":
        return NodeNow()
    try:
        endpoint = dial_endpoint(machine)
        dial_rules(cluster.spec if cluster else None, request.allow_loopback).check(endpoint.host)
    except TalosError as error:
        return NodeNow(Unknown(error.reason, error.message))
    credentials = credentials_for(ports, cluster_of(machine), cluster)
    facts: Observed[NodeFacts] = Absent()
    if isinstance(credentials, Present):
        try:
            async with ports.nodes.authenticated(endpoint, credentials.value) as session:
                return NodeNow(Present(await session.facts(), str(endpoint)))
        except TalosError as error:
            facts = unknown(error)
    elif isinstance(credentials, Unknown):
        facts = credentials
    if text_at(machine.status, "appliedConfigHash"):
        return NodeNow(facts)
    insecure = await read_maintenance(ports, endpoint)
    if isinstance(insecure, Present):
        return NodeNow(insecure, maintenance=True)
    return NodeNow(facts if isinstance(facts, Unknown) else insecure)


def _address(machine: Record) -> str:
    try:
        return str(dial_endpoint(machine))
    except TalosError:
        return ""


def _node(now: NodeNow) -> Json:
    """What the node says, as plain data; null where it was not asked."""
    if isinstance(now.facts, Absent):
        return None
    if isinstance(now.facts, Unknown):
        return {"answers": False, "maintenance_mode": False, "reason": now.facts.reason, "message": now.facts.message}
    facts = now.facts.value
    stage = facts.stage.value if isinstance(facts.stage, Present) else None
    return {
        "answers": True, "maintenance_mode": now.maintenance, "reason": "", "message": "",
        "stage": stage.stage if stage else None, "ready": stage.ready if stage else None, "unmet": list(stage.unmet) if stage else [],
        "uuid": facts.identity.uuid, "serial": facts.identity.serial, "macs": list(facts.identity.macs), "hostname": facts.hostname,
        "talos_version": facts.talos_version, "fingerprint": facts.certificate.fingerprint, "sha256": facts.certificate.sha256,
        "certificate_ends": moment(facts.certificate.not_after),
        "secure_boot": facts.secure_boot.value if isinstance(facts.secure_boot, Present) else None,
        "disks": [disk_status(disk) for disk in facts.disks.value] if isinstance(facts.disks, Present) else None,
        "links": [link_status(link) for link in facts.links.value] if isinstance(facts.links, Present) else None,
    }
