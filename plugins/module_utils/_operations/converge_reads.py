# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Observing one converged machine: with authentication only, and only what the decision needs (design sections 10 and 11)."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field, replace

from .._decide.comparison import Compared, compare, same
from .._decide.convergence import decide
from .._decide.convergence_words import ConfiguredNode, Converging, Found, Need
from .._decide.machine_edit_words import Etcd
from .._decide.moved_node import may_be_dialled, told_at
from .._decide.reachability import own_reboot_began
from .._decide.same_machine import other_machine
from .._machineconfig.contract import schema_for
from .._machineconfig.documents import Config, load
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.render import Rendered
from .._model.addresses import parse_endpoint
from .._model.credentials import Credentials
from .._model.errors import TalosError
from .._model.machine import cluster_of, identity_of
from .._model.observations import Endpoint
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.outcome import Difference
from .._model.ports import Session
from .._model.records import text_at
from .config_shown import change_lines, shown_differences
from .draining import hosting_of
from .life_reads import static_endpoints, unknown
from .node_reads import read_members
from .provisioning_reads import Surroundings
from .quorum_reads import read_etcd
from .record_reads import MachineView, address_of, credentials_for, need_store, other_control_planes, read_machine
from .whereabouts import place_of_machine


@dataclass(frozen=True)
class Looked:
    """An observation with what reading it needs and decisions must not see. `shown`: the differences for the result, masked."""

    view: MachineView
    seen: Converging
    endpoint: Endpoint | None = None
    credentials: Credentials | None = None
    shown: tuple[Difference, ...] = ()
    #: What the node runs, where it is not what it should: for masking what the node says by it.
    active: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class _Reading:
    """What one connection gave."""

    node: ConfiguredNode
    compared: Observed[Compared]
    shown: tuple[Difference, ...] = ()
    active: bytes = field(default=b"", repr=False)


class _Unexpected(Exception):
    """The node does not run what was applied to it last, so that the render is needed."""


def begin(around: Surroundings, name: str, fully: bool = False) -> Looked:
    """The observation before the node was asked. `fully`: with the render in any case. Raises TalosError `RecordNotFound`."""
    view = read_machine(need_store(around.ports), name)
    address = address_of(view, around.allow_loopback)
    credentials = credentials_for(around.ports, cluster_of(view.machine), view.cluster)
    expected = "" if fully else _expected(around, view)
    wanted = None if expected else _render(around, view)
    seen = Converging(
        view.target, view.machine, wanted, Present(credentials.value.ca) if isinstance(credentials, Present) else credentials,
        Present(str(address.value)) if isinstance(address, Present) else address, view.cluster, view.siblings,
        allow_reboot=around.allow_reboot, drains=around.drains and around.ports.workloads is not None, expected=expected, timing=around.timing)
    return Looked(view, seen, address.value if isinstance(address, Present) else None,
                  credentials.value if isinstance(credentials, Present) else None)


def _render(around: Surroundings, view: MachineView) -> Observed[Rendered]:
    return around.renderer.machine(view) if around.renderer is not None else Absent("there is no renderer")


def _expected(around: Surroundings, view: MachineView) -> str:
    """The hash of what was applied last, while its inputs are the ones of now: the same inputs give the same bytes (section 8)."""
    applied, inputs = text_at(view.machine.status, "appliedConfigHash"), text_at(view.machine.status, "observedInputsHash")
    if not applied or not inputs or around.renderer is None:
        return ""
    return applied if around.renderer.inputs_hash(view) == inputs else ""


async def observe(around: Surroundings, looked: Looked) -> tuple[Looked, Found]:
    """Read what the decision asks for until it has decided."""
    while True:
        verdict = decide(looked.seen, around.ports.clock.now())
        if isinstance(verdict, Found):
            return looked, verdict
        looked = await _read(around, looked, verdict)


async def observe_on(around: Surroundings, looked: Looked, session: Session) -> tuple[Looked, Found]:
    """The same, on readings made on this very connection, which a step will use."""
    return await observe(around, _with(around, looked, await _configured(around, looked, session, fully=True)))


async def _read(around: Surroundings, looked: Looked, need: Need) -> Looked:
    seen = looked.seen
    if need.reading == "node":
        return await _node(around, looked)
    if need.reading == "quorum":
        return replace(looked, seen=replace(seen, quorum=await _quorum(around, looked)))
    if need.reading == "hosting":
        return replace(looked, seen=replace(seen, hosting=await hosting_of(around.ports, looked.view.machine) or Absent("no Kubernetes")))
    if need.reading == "named":
        return replace(looked, seen=replace(seen, named=around.renderer.names_beside(looked.view) if around.renderer is not None else ()))
    endpoints = other_control_planes(looked.view) or _own(looked)
    return replace(looked, seen=replace(seen, members=await read_members(around.ports, endpoints, looked.credentials)))


async def _node(around: Surroundings, looked: Looked) -> Looked:
    """At the address to dial, else at the static addresses of the spec, else where the Kubernetes Node says that it is."""
    if looked.endpoint is None:
        raise ValueError("the gate of the address comes before every reading")
    try:
        return await _at_its_addresses(around, looked, looked.endpoint)
    except _Unexpected:
        seen = replace(looked.seen, expected="", wanted=_render(around, looked.view))
        return replace(looked, seen=seen)


async def _at_its_addresses(around: Surroundings, looked: Looked, endpoint: Endpoint) -> Looked:
    first = await _at(around, looked, endpoint)
    if _is_own(looked, first):
        return _with(around, looked, first)
    known = static_endpoints(looked.view.machine, endpoint.port)
    place = await place_of_machine(around.ports, looked.view.machine)
    told = told_at(looked.view.machine, place)
    for other in dict.fromkeys((*known, *(told if may_be_dialled(looked.view.machine, place) else ()))):
        if other != endpoint:
            found = await _at(around, looked, other)
            if _is_own(looked, found):
                return _with(around, looked, found)
    maintained = isinstance(first, Unknown) and first.reason == "UnknownAuthority" and await _in_maintenance(around, endpoint)
    looked = replace(looked, seen=replace(looked.seen, told=str(told[0]) if told else "", maintained=maintained))
    return _with(around, looked, first)


async def _in_maintenance(around: Surroundings, endpoint: Endpoint) -> bool:
    """A TLS error never decides that (section 5): whether a node asks for a client certificate does."""
    return (await around.ports.nodes.probe(endpoint, around.timing.maintenance_probe)).kind == "Maintenance"


def _is_own(looked: Looked, found: Observed[_Reading]) -> bool:
    return isinstance(found, Present) and not other_machine(identity_of(looked.view.machine), found.value.node.identity)


def _with(around: Surroundings, looked: Looked, found: Observed[_Reading]) -> Looked:
    if not isinstance(found, Present):
        return replace(looked, seen=replace(looked.seen, node=found))
    compared = found.value.compared
    refused = isinstance(compared, Present) and around.memory.takes_only_with_reboot(looked.view.machine.name, compared.value.sha256)
    seen = replace(looked.seen, node=Present(found.value.node, found.source), compared=compared, refused_at_once=refused)
    return replace(looked, seen=seen, shown=found.value.shown, active=found.value.active)


async def _at(around: Surroundings, looked: Looked, endpoint: Endpoint) -> Observed[_Reading]:
    if looked.credentials is None:
        raise ValueError("the gate of the credentials comes before every reading")
    try:
        async with around.ports.nodes.authenticated(endpoint, looked.credentials) as session:
            return await _configured(around, looked, session)
    except TalosError as error:
        return unknown(error)


async def _configured(around: Surroundings, looked: Looked, session: Session, fully: bool = False) -> Observed[_Reading]:
    """Identity, stage and both configurations; version, links and boot id only where something differs, or is to be done (`fully`)."""
    identity, stage, active, persistent = await asyncio.gather(
        session.identity(), session.stage(), session.machine_config(), session.machine_config(persistent=True))
    node = ConfiguredNode(str(session.endpoint), identity, stage)
    rebooting = own_reboot_began(looked.view.machine, looked.view.cluster) is not None
    if fully or rebooting:
        node = replace(node, boot_id=await session.boot_id())
    for found in (active, persistent):
        if isinstance(found, Unknown) and found.reason != "PermissionDenied":
            return found
    wanted, at = looked.seen.wanted, str(session.endpoint)
    if not isinstance(active, Present) or isinstance(persistent, Unknown):
        unread = next((found for found in (active, persistent) if isinstance(found, Unknown)), Absent("the node holds no configuration"))
        return Present(_Reading(node, unread), at)
    kept = persistent.value if isinstance(persistent, Present) and persistent.value != active.value else None
    expected = looked.seen.expected or (wanted.value.sha256 if isinstance(wanted, Present) else "")
    if kept is None and hashlib.sha256(active.value).hexdigest() == expected:
        return Present(_Reading(node, Present(same(expected))), at)
    if not isinstance(wanted, Present):
        raise _Unexpected()
    facts = await session.facts()
    node = replace(node, version=facts.talos_version, links=facts.links)
    compared, shown = _compare(around, looked.view.machine.name, wanted.value, active.value, kept, facts.talos_version)
    return Present(_Reading(node, compared, shown, active.value), at)


def _compare(around: Surroundings, name: str, wanted: Rendered, active: bytes, kept: bytes | None,
             version: str) -> tuple[Observed[Compared], tuple[Difference, ...]]:
    key = (wanted.sha256, hashlib.sha256(active).hexdigest(), hashlib.sha256(kept).hexdigest() if kept is not None else "", version)
    known = around.memory.known(name, key)
    if known is not None:
        return Present(known[0]), known[1]
    try:
        running = _load(active, version)
        stored = _load(kept, version) if kept is not None else None
    except ConfigProblem as error:
        return Unknown("CurrentConfigUnavailable", error.message), ()
    compared = compare(wanted, running, stored, version)
    shown = _shown(name, wanted, running, stored, compared)
    around.memory.remember(name, key, compared, shown)
    return Present(compared), shown


def _load(raw: bytes, version: str) -> Config:
    return load(raw, schema_for(version), source="the node's configuration")


def _shown(name: str, wanted: Rendered, running: Config, stored: Config | None, compared: Compared) -> tuple[Difference, ...]:
    """One entry for what the node runs, and one for what it keeps where only that differs."""
    state, config, what = compared.state, running, f"configuration of {name}"
    if state.drift is not None and state.drift.none and stored is not None and compared.kept is not None:
        state, config, what = compared.kept, stored, f"configuration of {name} for its next boot"
    before, after = change_lines(shown_differences(wanted.config, config, state))
    return (Difference(before, after, what),) if before != after else ()


async def _quorum(around: Surroundings, looked: Looked) -> Observed[Etcd]:
    """etcd without this machine, as the other control planes tell it; of an only control plane its own list."""
    view = looked.view
    found = await read_etcd(around.ports, view.machine, view.cluster, view.siblings, around.allow_loopback)
    if isinstance(found, Present) or other_control_planes(view) or not isinstance(looked.seen.node, Present):
        return found
    members = await read_members(around.ports, _own(looked), looked.credentials)
    return Present(Etcd(members.value, 0), members.source) if isinstance(members, Present) else members


def _own(looked: Looked) -> tuple[Endpoint, ...]:
    node = looked.seen.node
    return (parse_endpoint(node.value.at),) if isinstance(node, Present) else ()
