# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Render, validate and compare configurations with what nodes run (design sections 8 and 11). Writes nothing.

One machine's configurations are held only while it is looked at, so that memory does not grow with the fleet.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from .._decide.approved import has_converged, is_approved
from .._decide.config_state import ConfigState, judge
from .._decide.same_machine import difference as other_identity
from .._machineconfig.bring import read_expanded
from .._machineconfig.contract import contract_in, schema_for
from .._machineconfig.documents import Config, load
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.render import Rendered
from .._machineconfig.schema import VERSIONS
from .._machineconfig.validate import validate
from .._machineconfig.yaml_read import decode
from .._model.approval import was_sent
from .._model.errors import TalosError
from .._model.machine import cluster_of, identity_of
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.outcome import Difference, MachineRow, Outcome
from .._model.ports import Gate, Ports, Store
from .._model.records import CLUSTER, MACHINE, Json, Listing, Record, text_at
from .._model.timing import Timing
from .config_shown import change_lines, difference_lines, masked_config, shown_differences
from .life_reads import unknown
from .probing import each
from .record_reads import MachineView, address_of, credentials_for, need_store, no_cluster
from .rendering import Renderer
from .select import chosen

#: How many nodes are read at once; each holds two configurations meanwhile.
_AT_ONCE = 16
#: How many differences of one machine are told live; the result has all.
_LINES = 20


@dataclass(frozen=True)
class Request:
    """Which machines, as for `talos_machine_info`; without names and selection only approved ones.

    `config`: a configuration that a person brings, taken instead of the render, and checked by `talos_version` (the newest when '').
    `compare`: read what the nodes run. `show`: the configuration itself, masked.
    """

    machines: tuple[str, ...] = ()
    select: str = ""
    cluster: str = ""
    config: bytes | None = None
    source: str = ""
    talos_version: str = ""
    compare: bool = True
    show: bool = False
    allow_loopback: bool = False
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True)
class _Looked:
    """The answer for one machine, without its configurations."""

    row: MachineRow
    shown: dict[str, Json]
    unreachable: bool
    difference: Difference | None


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """There is no plan, so the gate has nothing to show."""
    if request.config is not None and not (request.machines or request.select or request.cluster):
        looked = [_one(request, "", MachineRow(request.source), _brought(request, request.talos_version), Absent(), "It is valid.")]
        _tell(ports, looked[0])
    else:
        looked = await _machines(request, ports)
    held = tuple(entry.row.name for entry in looked if entry.row.reason and entry.row.reason not in ("Converged", "Drifted") and not entry.unreachable)
    drifted = sum(entry.row.reason == "Drifted" for entry in looked)
    told = f"{len(looked)} configuration{'' if len(looked) == 1 else 's'}: {drifted} drifted, {len(held)} blocked."
    return Outcome(
        machines=tuple(entry.row for entry in looked), blocked=held, unreachable=tuple(entry.row.name for entry in looked if entry.unreachable),
        message=looked[0].row.message if len(looked) == 1 else told, reason=looked[0].row.reason if len(looked) == 1 else "",
        differences=tuple(entry.difference for entry in looked if entry.difference is not None),
        extra={"configs": [entry.shown for entry in looked]})


async def _machines(request: Request, ports: Ports) -> list[_Looked]:
    store = need_store(ports)
    listing = store.list(MACHINE)
    clusters = {record.name: record for record in store.list(CLUSTER).records}
    named = bool(request.machines or request.select)
    names = chosen(listing.records, request.machines, request.select, request.cluster)
    if request.cluster and not names and request.cluster not in clusters:
        raise no_cluster(store, request.cluster)
    if not named and not any(is_approved(record) for record in listing.records if record.name in names):
        ports.progress(f"Cluster {request.cluster} has no approved machine.")
    records = [_record(listing, name, store) for name in names]
    views = [MachineView(record, clusters.get(cluster_of(record)), ()) for record in records if named or is_approved(record)]
    renderer = Renderer(store)
    return await each(views, lambda view: _told(request, ports, renderer, view), _AT_ONCE)


async def _told(request: Request, ports: Ports, renderer: Renderer, view: MachineView) -> _Looked:
    """One machine, with a line for the person, and one for each path that differs."""
    looked = await _look(request, ports, renderer, view)
    _tell(ports, looked)
    return looked


def _tell(ports: Ports, looked: _Looked) -> None:
    message, name = looked.row.message, looked.row.name
    ports.progress(message if message.startswith(name) else f"{name}: {message}")
    for line in difference_lines(looked.shown)[:_LINES]:
        ports.progress(f"  {line}")


def _record(listing: Listing, name: str, store: Store) -> Record:
    for record in listing.records:
        if record.name == name:
            return record
    for entry in listing.broken:
        if entry.name == name:
            raise TalosError("RecordBroken", f"Machine {name} cannot be read ({entry.source}, line {entry.line}): {entry.sentence}", "Mend the file.")
    raise TalosError("RecordNotFound", f"There is no machine {name} in {store.description}.", "Check the name; talos_machine_info lists the machines.")


async def _look(request: Request, ports: Ports, renderer: Renderer, view: MachineView) -> _Looked:
    machine = view.machine
    row = MachineRow(machine.name, cluster_of(machine), text_at(machine.status, "stage"))
    if not is_approved(machine):
        reason = "Rejected" if text_at(machine.spec, "approvalState") == "rejected" else "PendingApproval"
        return _answer(row, ConfigState(reason, "It is not approved, so it has no role to render for.", "8/not-approved"), {}, None)
    version = text_at(view.cluster.spec, "talosVersion") if view.cluster is not None else ""
    wanted = renderer.machine(view, keep=False) if request.config is None else _brought(request, request.talos_version or version)
    if not request.compare or not isinstance(wanted, Present):
        return _one(request, machine.name, row, wanted, Absent(), "")
    if not (was_sent(machine) or has_converged(machine)):
        return _one(request, machine.name, row, wanted, Absent(), "It renders; it was not sent a configuration yet.")
    running, node_version = await _running(request, ports, view)
    return _one(request, machine.name, row, wanted, running, "", node_version)


async def _running(request: Request, ports: Ports, view: MachineView) -> tuple[Observed[Config], str]:
    """What the node runs, read with authentication only, and its Talos version."""
    address = address_of(view, request.allow_loopback)
    credentials = credentials_for(ports, cluster_of(view.machine), view.cluster)
    if not isinstance(address, Present):
        return address if isinstance(address, Unknown) else Unknown("EndpointRefused", "it has no address"), ""
    if not isinstance(credentials, Present):
        return credentials if isinstance(credentials, Unknown) else Unknown("SecretsUnavailable", "there are no credentials"), ""
    try:
        async with ports.nodes.authenticated(address.value, credentials.value) as session:
            facts = await session.facts()
            other = other_identity(identity_of(view.machine), facts.identity)
            if other:
                return Unknown("EndpointIdentityMismatch", f"another machine of the cluster answers: {other}."), facts.talos_version
            raw = await session.machine_config()
    except TalosError as error:
        return unknown(error), ""
    if not isinstance(raw, Present):
        return Unknown("CurrentConfigUnavailable", "the node holds no configuration."), facts.talos_version
    try:
        return Present(load(raw.value, schema_for(facts.talos_version), source="the node's configuration")), facts.talos_version
    except ConfigProblem as error:
        return Unknown("CurrentConfigUnavailable", error.message), facts.talos_version


def _brought(request: Request, version: str) -> Observed[Rendered]:
    """A configuration that a person brings, checked like a render."""
    try:
        read_expanded(decode(request.config or b""))
        config = load(request.config or b"", schema_for(version) if version else VERSIONS[-1])
        verdict = validate(config, "metal")
        verdict.refuse()
    except ConfigProblem as error:
        error.at(source=request.source)
        return Unknown(error.reason, error.message, error.hint)
    text = (request.config or b"").decode("utf-8", "replace")
    return Present(Rendered(config, text, hashlib.sha256(request.config or b"").hexdigest(), "", contract_in(config), verdict.warnings, False), request.source)


def _one(request: Request, name: str, row: MachineRow, wanted: Observed[Rendered], running: Observed[Config], instead: str,
         node_version: str = "") -> _Looked:
    if isinstance(wanted, Present) and not node_version:
        node_version = wanted.value.contract
    state = judge(wanted, running, node_version)
    shown: dict[str, Json] = {}
    difference: Difference | None = None
    if isinstance(wanted, Present):
        rendered = wanted.value
        shown = {"contract": rendered.contract, "sha256": rendered.sha256, "inputs_hash": rendered.inputs_hash,
                 "install_missing": rendered.install_missing, "warnings": [finding.sentence for finding in rendered.warnings]}
        if request.show:
            shown["config"] = masked_config(rendered.config)
        if isinstance(running, Present) and state.drift is not None:
            found = shown_differences(rendered.config, running.value, state)
            shown.update(found)
            before, after = change_lines(found)
            difference = Difference(before, after, f"configuration of {name}") if before != after else None
    return _answer(row, state, shown, difference, instead)


def _answer(row: MachineRow, state: ConfigState, shown: dict[str, Json], difference: Difference | None, instead: str = "") -> _Looked:
    message = instead if instead and state.rule == "8/renders" else state.message
    full = MachineRow(row.name, row.cluster, row.stage, state.reason == "Converged", state.reason, message)
    unreachable = state.rule == "11/unreadable"
    entry: dict[str, Json] = {
        "name": row.name, "cluster": row.cluster, "reason": state.reason, "message": message, "renders": bool(shown), "compared": state.compared,
        "in_sync": state.in_sync if state.compared else None, **shown}
    return _Looked(full, entry, unreachable, difference)
