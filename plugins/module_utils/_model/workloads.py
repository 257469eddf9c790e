# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs on a Node of a managed cluster, as values (design section 14; the fields are Kubernetes')."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .observations import NodePlace


@dataclass(frozen=True)
class Pod:
    """One pod of a Node. `owner` and `owner_kind` are of the controller that makes it again, '' for none. `mirror`: the API server's picture
    of a static pod. `deleting`: it was told to end. `claims`: PersistentVolumeClaims of its namespace. `scratch`: its emptyDir volumes
    that are on a disk. `paths`: folders of the node that it may write to."""

    namespace: str
    name: str
    uid: str
    phase: str = "Running"
    owner_kind: str = ""
    owner: str = ""
    mirror: bool = False
    deleting: bool = False
    ready: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Volume:
    """A bound PersistentVolume. `local`: it is a disk or folder of a node. `places`: where its node affinity says that it is, each
    alternative the values that it asks for; () where it can be anywhere."""

    name: str
    namespace: str
    claim: str
    local: bool = False
    places: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Requirement:
    """One expression of a label selector: `In`, `NotIn`, `Exists` or `DoesNotExist`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget, and how many of its pods may go now. `selector` None selects none, () all of its namespace."""

    namespace: str
    name: str
    selector: tuple[Requirement, ...] | None
    allowed: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Hosting:
    """A Node and what is on it. `elsewhere`: how many other Nodes are Ready and take pods."""

    node: NodePlace
    pods: tuple[Pod, ...] = ()
    volumes: tuple[Volume, ...] = ()
    budgets: tuple[Budget, ...] = ()
    elsewhere: int = 1


#: What became of one eviction: it was taken, the pod was gone already, or a budget (or the API server) stands against it for now.
ASKED, GONE, REFUSED = "asked", "gone", "refused"


@dataclass(frozen=True)
class Eviction:
    """`why`: what stands against it, as a clause."""

    state: str
    why: str = ""
