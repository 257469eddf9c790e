# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`talos_cni`: the managed network of a cluster that has a record, installed where there is none (design sections 3 and 15)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from .._decide.approved import is_bootstrapped
from .._decide.cni import UNTOLD_YET, choose
from .._decide.cni_objects import decide_network
from .._decide.cni_words import Choice, ChangeObject, CniCase, CniWish, CreateObject, NetworkPlan
from .._model.container_network import KubeAccess, Live, NetworkSeen
from .._model.errors import TalosError
from .._model.observed import Absent, Present
from .._model.outcome import Outcome
from .._model.plan import Plan
from .._model.ports import Gate, Networks, Ports
from .._model.records import CLUSTER, Record, dig, text_at
from .._model.timing import Timing
from .admin_access import access_from
from .network_plan import Writer, differences, plan_network, render_twice, told
from .record_reads import need_store, no_cluster
from .rendering import bundle_of

#: How often a Kubernetes that does not answer yet is asked again, in seconds.
_AGAIN = 5.0
#: What a Kubernetes that is just coming up comes to.
_YET = ("TimedOut", "CallFailed")


@dataclass(frozen=True)
class Request:
    """Which cluster. `wait`: for how many seconds a Kubernetes that does not answer yet is waited for."""

    cluster: str
    network: CniWish = field(default_factory=lambda: CniWish("managed"))
    wait: float = 600.0
    timing: Timing = field(default_factory=Timing)


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Look, decide, show the plan, and write what is missing or differs."""
    store = need_store(ports)
    record = store.get(CLUSTER, request.cluster)
    if record is None:
        raise no_cluster(store, request.cluster)
    if ports.networks is None:
        raise TalosError("InternalError", "Nothing can ask the cluster's Kubernetes.", "This is a fault of the collection; please report it.")
    case = _case(request, record)
    if case.recorded != "managed":
        access, found = None, NetworkPlan(Plan(refusals=choose(case).refusals))
    elif ports.check and not is_bootstrapped(record):
        access, found = None, await _before_it_is_there(case, record, ports.networks)
    else:
        access = access_from(bundle_of(store, record), request.cluster, text_at(record.spec, "endpoint"), ports.clock.now())
        dummy, found = await _when_it_answers(request, case, access, ports, ports.networks)
    granted = gate(found.plan)
    refused = next(iter(found.plan.refusals), None)
    executed: list[str] = []
    async with AsyncExitStack() as stack:
        writer = Writer(ports, access, request.timing, stack) if access is not None and refused is None else None
        for step in granted.steps if writer is not None else ():
            if writer is not None and isinstance(step, (CreateObject, ChangeObject)):
                await writer.write(step)
                executed.append(step.id)
    return Outcome(
        found.plan, tuple(executed), refused=refused is not None, reason=refused.reason if refused is not None else "",
        message=f"{refused.message} {refused.hint}".strip() if refused is not None else "" if found.plan.steps else "The network is as its record says.",
        waiting_for=("its Kubernetes answers",) if access is None and refused is None else (), differences=differences(found),
        extra={"network": told(found)})


def _case(request: Request, record: Record) -> CniCase:
    kept = dig(record.spec, "cni", "cilium", "values")
    recorded = text_at(record.spec, "cni", "preset") or "unmanaged"
    return CniCase(request.cluster, replace(request.network, by_record=True), recorded, kept if isinstance(kept, dict) else {})


async def _before_it_is_there(case: CniCase, record: Record, networks: Networks) -> NetworkPlan:
    """What a check run shows of a cluster that is not bootstrapped yet: it has nothing."""
    seen = replace(case, seen=Present(NetworkSeen(kubernetes=text_at(record.spec, "kubernetesVersion"))))
    choice = choose(seen)
    if choice.branch is None:
        return NetworkPlan(Plan(refusals=choice.refusals))
    first, second = await render_twice(networks, choice.branch)
    found = decide_network(seen, choice.branch, first, second, tuple(Live(one, Absent()) for one in first))
    return replace(found, plan=replace(found.plan, warnings=(*choice.warnings, *found.plan.warnings)))


async def _when_it_answers(request: Request, case: CniCase, access: KubeAccess, ports: Ports, networks: Networks) -> tuple[Choice, NetworkPlan]:
    """A Kubernetes that was just bootstrapped takes minutes to answer, before that its load balancer may, and the kubelet of a Node that has just
    joined says nothing yet. In check mode nothing is waited for."""
    until = ports.clock.monotonic() + request.wait
    while True:
        choice, found = await plan_network(networks, access, case, ports.progress)
        early = next((one for one in choice.refusals if one.rule == UNTOLD_YET or one.rule == "15/cni-unread" and one.reason in _YET), None)
        if early is None or ports.check or ports.clock.monotonic() + _AGAIN > until:
            return choice, found
        ports.progress(f"{request.cluster}: its Kubernetes does not answer yet" if early.rule != UNTOLD_YET else f"{request.cluster}: {early.message}")
        await ports.clock.sleep(_AGAIN)
