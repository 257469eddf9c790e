# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of an adoption that is about the cluster's network: taken over with the cluster, installed before it, or left (design section 15)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from .._decide.adoption import decide_adoption
from .._decide.adoption_case import Case
from .._decide.adoption_reading import endpoint_of, makes_flannel
from .._decide.adoption_words import Adoption, AdoptSeen, AdoptWish, ReleaseMachine
from .._decide.cni import choose
from .._decide.cni_words import INSTALL, Branch, CniCase, CniWish, NetworkPlan
from .._model.container_network import KubeAccess
from .._model.errors import TalosError
from .._model.observed import Present, Unknown
from .._model.outcome import Difference
from .._model.plan import Plan
from .._model.ports import Ports
from .._model.records import Json, dig, text_at
from .._model.timing import Timing
from .admin_access import access_from
from .network_plan import Writer, differences, plan_network, told


@dataclass(frozen=True)
class AdoptedNetwork:
    """What the network comes to, and how its API server is reached."""

    found: NetworkPlan = field(default_factory=NetworkPlan)
    access: KubeAccess | None = None

    @property
    def differences(self) -> tuple[Difference, ...]:
        return differences(self.found)

    @property
    def told(self) -> dict[str, Json]:
        return told(self.found)

    def writer(self, ports: Ports, timing: Timing, stack: AsyncExitStack) -> Writer | None:
        """What writes its objects, None where there are none."""
        return Writer(ports, self.access, timing, stack) if self.access is not None else None


async def with_network(wish: CniWish, adopt: AdoptWish, seen: AdoptSeen, ports: Ports) -> tuple[Adoption, AdoptedNetwork]:
    """The adoption with its network. Raises TalosError where helm does not render, or the API server does not tell an object."""
    now = ports.clock.now()
    case = _case(replace(wish, add=adopt.add), adopt, seen)
    if wish.preset != "managed":
        choice = choose(case)
        network: dict[str, Json] = {"preset": wish.preset} if wish.preset else {}
        found = decide_adoption(replace(adopt, network=network), seen, now)
        return _refused(found, Plan(refusals=choice.refusals)), AdoptedNetwork()
    found = decide_adoption(adopt, seen, now)
    if ports.networks is None or not found.plan.steps and found.plan.refusals:
        return found, AdoptedNetwork()
    try:
        access = _access(adopt, seen, found, now)
    except TalosError as error:
        case = replace(case, seen=Unknown(error.reason, error.message, error.hint))
        return _refused(found, Plan(refusals=choose(case).refusals)), AdoptedNetwork()
    choice, planned = await plan_network(ports.networks, access, case, ports.progress)
    if choice.branch is None:
        return _refused(found, planned.plan), AdoptedNetwork(planned, access)
    if seen.cluster is None:
        found = decide_adoption(replace(adopt, network=_recorded(choice.branch)), seen, now)
    return replace(found, plan=_joined(found.plan, planned, choice.branch)), AdoptedNetwork(planned, access)


def _case(wish: CniWish, adopt: AdoptWish, seen: AdoptSeen) -> CniCase:
    cluster = seen.cluster
    recorded = (text_at(cluster.spec, "cni", "preset") or "unmanaged") if cluster is not None else ""
    kept = dig(cluster.spec, "cni", "cilium", "values") if cluster is not None else None
    flannel = tuple(node.address for node, config in Case(adopt, seen).planes if makes_flannel(config)) if cluster is None else ()
    return CniCase(adopt.cluster, wish, recorded, (kept if isinstance(kept, dict) else {}) if recorded == "managed" else None, flannel=flannel)


def _access(adopt: AdoptWish, seen: AdoptSeen, found: Adoption, now: float) -> KubeAccess:
    """With the bundle that the adoption goes by, at the endpoint that the records have or the configurations say."""
    case = Case(adopt, seen)
    bundle = case.bundle
    server = text_at(found.cluster.spec, "endpoint") if found.cluster is not None else next((endpoint_of(config) for dummy, config in case.planes), "")
    if not isinstance(bundle, Present) or not server:
        raise TalosError("SecretsUnavailable", "There is no secrets bundle, or no endpoint, with which its Kubernetes could be asked.",
                         "Name a control plane too, or give bundle_file.")
    return access_from(bundle.value, adopt.cluster, server, now)


def _recorded(branch: Branch) -> dict[str, Json]:
    return {"preset": "managed", **({"cilium": {"values": dict(branch.values)}} if branch.values else {})}


def _refused(found: Adoption, network: Plan) -> Adoption:
    """Nothing is written where the network is refused."""
    if not network.refusals:
        return found
    return replace(found, plan=Plan(refusals=(*network.refusals, *found.plan.refusals), warnings=(*network.warnings, *found.plan.warnings)))


def _joined(adoption: Plan, network: NetworkPlan, branch: Branch) -> Plan:
    """One plan. A network that is missing comes first, since nothing runs without it; one that is there is taken over before machines are let go."""
    held = tuple(step for step in adoption.steps if not isinstance(step, ReleaseMachine))
    released = tuple(step for step in adoption.steps if isinstance(step, ReleaseMachine))
    steps = (*network.plan.steps, *held) if branch.what == INSTALL else (*held, *network.plan.steps)
    return Plan((*steps, *released), (*network.plan.refusals, *adoption.refusals), (*network.plan.warnings, *adoption.warnings))
