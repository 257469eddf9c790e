# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which addresses a discovery pass probes, and which it leaves alone (design section 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from .._model.dialling import DialRules
from .._model.errors import TalosError
from .._model.hardware import same_machine
from .._model.machine import cluster_of, dial_endpoint
from .._model.endpoint import Endpoint
from .._model.observed import Observed, Present
from .._model.plan import Refusal, Target, Warn
from .._model.records import CLUSTER, Record
from .discovery_table import OTHER, OWN, row_of, state_of
from .discovery_words import Answer, Discovery, KubernetesHost, Skipped, Targets, World
from .same_machine import recorded_identity

#: So many addresses, and so many reasons, are written out.
_SHOWN = 5


def owners_of(machines: Iterable[Record]) -> Mapping[Endpoint, Record]:
    """The machine that is dialled at an address; of several the first by name. A record without an address has none."""
    owners: dict[Endpoint, Record] = {}
    for machine in sorted(machines, key=lambda record: record.name):
        try:
            owners.setdefault(dial_endpoint(machine), machine)
        except TalosError:
            continue
    return owners


def targets_of(request: Discovery, registered: Iterable[Endpoint], machines: tuple[Record, ...],
               hosts: Observed[tuple[KubernetesHost, ...]], rules: DialRules) -> Targets:
    """`registered` are the addresses of the cluster's `spec.discovery`, expanded. What a person named comes first."""
    owners = owners_of(machines)
    told = {host.address: host for host in hosts.value} if isinstance(hosts, Present) else {}
    marked = [Endpoint(host.address) for host in told.values() if host.reset_at] if not request.named else []
    problem = rules.screen()
    probe: dict[Endpoint, None] = {}
    skipped: dict[Endpoint, Skipped] = {}
    for endpoint in request.named:
        why = problem(endpoint.host)
        if why:
            skipped[endpoint] = Skipped(endpoint, "3/endpoint-refused", f"{endpoint} is not dialled: {why}.")
        else:
            probe[endpoint] = None
    for endpoint in (*registered, *sorted(marked)):
        if endpoint in probe or endpoint in skipped:
            continue
        found = _left_alone(endpoint, owners, told, problem)
        if found is None:
            probe[endpoint] = None
        else:
            skipped[endpoint] = found
    if request.whole:
        for endpoint, machine in owners.items():
            if cluster_of(machine) == request.cluster and state_of(machine) == "pending" and endpoint not in probe and endpoint not in skipped:
                skipped[endpoint] = Skipped(endpoint, "6/left-discovery", (
                    f"Machine {machine.name} is pending at {endpoint}, which is no longer in spec.discovery: it is not probed and keeps its pin. "
                    "Trust its certificate with talos_machine, or list the address again."))
    return Targets(tuple(probe), tuple(skipped[endpoint] for endpoint in sorted(skipped)))


def _left_alone(endpoint: Endpoint, owners: Mapping[Endpoint, Record], told: Mapping[str, KubernetesHost],
                problem: Callable[[str], str]) -> Skipped | None:
    owner = owners.get(endpoint)
    if owner is not None:
        row = row_of(state_of(owner), OWN)
        if not row.probed:
            return Skipped(endpoint, row.rule, f"{endpoint} is the address of machine {owner.name} ({row.state}): it is not probed.")
    host = told.get(endpoint.host)
    if host is not None and not host.reset_at:
        return Skipped(endpoint, "6/node-host", f"{endpoint} is Kubernetes Node {host.node}, which was not reset: it is not probed.")
    why = problem(endpoint.host)
    return Skipped(endpoint, "3/endpoint-refused", f"{endpoint} is not dialled: {why}.") if why else None


def not_dialled(request: Discovery, targets: Targets, answers: Iterable[Answer]) -> tuple[Warn, ...]:
    """One warning that names the registered addresses which are not dialled, and why; a named one is refused instead."""
    named = set(request.named)
    told = {skip.endpoint: skip.message for skip in targets.skipped if skip.rule == "3/endpoint-refused"}
    told.update({answer.probe.endpoint: answer.probe.message for answer in answers if answer.probe.reason == "EndpointRefused"})
    left = sorted(set(told) - named)
    if not left:
        return ()
    shown = ", ".join(str(endpoint) for endpoint in left[:_SHOWN]) + (f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else "")
    reasons = list(dict.fromkeys(told[endpoint].rpartition(" is not dialled: ")[2].rstrip(".") for endpoint in left))
    why = "; ".join(reasons[:_SHOWN])
    one = len(left) == 1
    return (Warn(Target(kind=CLUSTER, name=request.cluster), (
        f"{len(left)} address{'' if one else 'es'} of spec.discovery {'is' if one else 'are'} not dialled: {shown} ({why}). List the addresses of the nodes "
        "themselves; allow_loopback is for a lab."), "6/not-dialled"),)


def refused_addresses(request: Discovery, targets: Targets, answers: Iterable[Answer]) -> tuple[Refusal, ...]:
    """A refusal for each address that a person named and that is not dialled, by what it is or by what it resolved to."""
    named = set(request.named)
    told = {skip.endpoint: skip.message for skip in targets.skipped if skip.rule == "3/endpoint-refused" and skip.endpoint in named}
    told.update({answer.probe.endpoint: answer.probe.message for answer in answers
                 if answer.probe.reason == "EndpointRefused" and answer.probe.endpoint in named})
    hint = "Give the address of a node itself; allow_loopback is for a lab."
    return tuple(Refusal(Target(name=str(endpoint), address=str(endpoint)), "EndpointRefused", told[endpoint], hint, "3/endpoint-refused")
                 for endpoint in sorted(told))


def to_verify(request: Discovery, world: World, rules: DialRules) -> tuple[Endpoint, ...]:
    """The own addresses of machines that were seen elsewhere and not yet asked in this pass.

    Another address is recorded only when the machine's own did not answer as that machine in the same pass, so it has to be
    asked. A rejected machine is not probed.
    """
    asked = {answer.probe.endpoint for answer in world.answers}
    wanted: set[Endpoint] = set()
    for machine in world.machines:
        state = state_of(machine)
        if cluster_of(machine) != request.cluster or state == "rejected" or not row_of(state, OTHER).moves:
            continue
        identity = recorded_identity(machine.spec)
        try:
            own = dial_endpoint(machine)
        except TalosError:
            continue
        if own in asked or rules.problem(own.host):
            continue
        if any(answer.facts is not None and same_machine(identity, answer.facts.identity) for answer in world.answers):
            wanted.add(own)
    return tuple(sorted(wanted))
