# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of a cluster's container network: what a person wants of it, which branch applies, and the steps (design section 15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from .._model.container_network import Chart, Live, NetworkSeen, Place
from .._model.observed import Absent, Observed
from .._model.plan import Plan, Refusal, Step, Target, Warn, plain
from .._model.records import CLUSTER, Json, JsonMap

#: The Cilium that is installed where there is none, and the chart that has it.
PINNED = "1.19.2"
REPOSITORY = "https://helm.cilium.io/"
NAMESPACE, RELEASE = "kube-system", "cilium"

#: What is there.
CILIUM, FLANNEL, CALICO, OTHER, SEVERAL, NOTHING, UNTOLD = "cilium", "flannel", "calico", "other", "several", "nothing", "untold"
#: What is done about it.
TAKE_OVER, INSTALL = "take over", "install"


@dataclass(frozen=True)
class CniWish:
    """What a person wants of the network of a cluster. `preset`: `managed`, `unmanaged`, or '' for what the configurations say. `values`: Helm
    values that are brought, None for none. `accept`: to objects that change. `chart`: one that is named, else the pinned one.
    `add`: machines are added to a managed cluster. `by_record`: nothing is done unless the cluster's record says `managed` already.
    """

    preset: str = ""
    values: JsonMap | None = field(default=None, repr=False)
    accept: bool = False
    chart: Chart | None = None
    version: str = ""
    add: bool = False
    by_record: bool = False


def chart_of(reference: str, repository: str, version: str) -> Chart | None:
    """The chart that a person names, None for the pinned one. A reference without a repository is OCI, a folder or an archive."""
    if not reference and not repository:
        return None
    return Chart(reference or RELEASE, repository, version)


def brought(values: Mapping[str, object] | None) -> dict[str, Json] | None:
    """Helm values as plain data; None where none are brought."""
    found = plain(values)
    return found if isinstance(found, dict) else None


@dataclass(frozen=True)
class CniCase:
    """`recorded`: the preset of the cluster's record, '' where it has none; `kept`: the values in it, None without a managed record.
    `seen`: what its Kubernetes says, Absent where nothing was asked. `flannel`: addresses of control planes whose configuration makes flannel.
    """

    cluster: str
    wish: CniWish
    recorded: str = ""
    kept: JsonMap | None = field(default=None, repr=False)
    seen: Observed[NetworkSeen] = Absent()
    flannel: tuple[str, ...] = ()

    @property
    def target(self) -> Target:
        return Target(CLUSTER, self.cluster, self.cluster)


@dataclass(frozen=True)
class Branch:
    """What is done: `TAKE_OVER` or `INSTALL`, the values that the record keeps, the chart, and whether the network that is there is of this
    product already. `left`: objects of the Helm release; `kubernetes` and `apis`: the version of the API server, and what it serves."""

    what: str
    values: Mapping[str, Json] = field(repr=False)
    chart: Chart
    ours: bool = False
    left: tuple[Place, ...] = ()
    kubernetes: str = ""
    apis: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Choice:
    """The branch, or why there is none; neither where the network is left as it is."""

    branch: Branch | None = None
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[Warn, ...] = ()


@dataclass(frozen=True)
class Change:
    """One place of an object. `secret`: neither value is shown."""

    path: str
    before: Json = None
    after: Json = None
    secret: bool = False


@dataclass(frozen=True)
class CreateObject(Step):
    """Make an object of the network that is not there."""

    action: ClassVar[str] = "CreateObject"

    settings: JsonMap = field(default_factory=dict, repr=False, metadata={"plan": "digest"})
    wanted: JsonMap = field(default_factory=dict, repr=False, metadata={"plan": "skip"})


@dataclass(frozen=True)
class ChangeObject(Step):
    """Change an object of the network at the places that differ. `running`: digest of the object as it was when this was planned."""

    action: ClassVar[str] = "ChangeObject"

    settings: JsonMap = field(default_factory=dict, repr=False, metadata={"plan": "digest"})
    running: str = ""
    wanted: JsonMap = field(default_factory=dict, repr=False, metadata={"plan": "skip"})
    changes: tuple[Change, ...] = field(default=(), repr=False, metadata={"plan": "skip"})


@dataclass(frozen=True)
class NetworkPlan:
    """The steps of the network with their refusals and warnings, and what each object comes to."""

    plan: Plan = field(default_factory=Plan)
    branch: Branch | None = None
    differences: tuple[tuple[Place, tuple[Change, ...], bool], ...] = ()
    live: tuple[Live, ...] = field(default=(), repr=False)
