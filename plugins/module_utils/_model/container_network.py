# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The container network of a cluster as it is seen in its Kubernetes, and the chart that installs one (design section 15)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .observed import Absent, Observed
from .records import Json, JsonMap, dig, list_at, text_at


@dataclass(frozen=True)
class KubeAccess:
    """How the API server of one cluster is reached: the cluster's name for messages, and a kubeconfig as text."""

    cluster: str
    kubeconfig: str = field(repr=False)


@dataclass(frozen=True)
class Chart:
    """Which chart: a name in a repository (a URL), an OCI reference, or the path of a folder or an archive. `version`: '' for what is there.
    `release` and `namespace`: what the chart is told that it is installed as."""

    reference: str
    repository: str = ""
    version: str = ""
    release: str = "cilium"
    namespace: str = "kube-system"

    def __str__(self) -> str:
        return f"{self.reference}{f' {self.version}' if self.version else ''}"


@dataclass(frozen=True)
class Release:
    """The newest record of a Helm release. `values`: those that a person gave it. `status`: Helm's word (`deployed`, `pending-upgrade`, …).
    `objects`: (apiVersion, kind, namespace, name) of what it made."""

    name: str
    namespace: str
    revision: int
    status: str
    chart: str = ""
    version: str = ""
    values: JsonMap = field(default_factory=dict, repr=False)
    objects: tuple[tuple[str, str, str, str], ...] = ()


@dataclass(frozen=True)
class Installer:
    """A DaemonSet that puts a network's configuration on the nodes. `images`: of its containers. `release`: (namespace, name) of the Helm
    release that made it, empty texts where none did. `ours`: this product wrote it last."""

    namespace: str
    name: str
    labels: JsonMap = field(default_factory=dict)
    images: tuple[str, ...] = ()
    release: tuple[str, str] = ("", "")
    ours: bool = False

    def __str__(self) -> str:
        return f"DaemonSet {self.namespace}/{self.name}"


@dataclass(frozen=True)
class NetworkSeen:
    """What was read of a cluster's network. `installers`: every DaemonSet that has the nodes' folder of network configurations, or is known by
    its image. `release`: of the Cilium that is there; `elsewhere`: the namespace that has its record, where the release's own
    has not. `ipam`: how the Cilium that is there numbers its pods, by its ConfigMap.
    Names of Nodes: `waiting` say that they have no network, `ready` are Ready, `silent` say neither. `proxy`: kube-proxy runs.
    `kubernetes`: the version of the API server, such as v1.35.2; `apis`: what it serves, such as apps/v1 and apps/v1/DaemonSet.
    """

    installers: tuple[Installer, ...] = ()
    release: Observed[Release] = Absent()
    ipam: Observed[str] = Absent()
    waiting: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    proxy: bool = False
    kubernetes: str = ""
    apis: tuple[str, ...] = field(default=(), repr=False)
    elsewhere: str = ""


@dataclass(frozen=True)
class Place:
    """Which object: equal for the same one, whatever version of its group names it."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def images_of(found: JsonMap) -> tuple[str, ...]:
    """The images of a workload's containers."""
    spec = dig(found, "spec", "template", "spec")
    return tuple(text_at(container, "image") for group in ("containers", "initContainers") for container in list_at(spec, group))


def place_of(found: JsonMap) -> Place:
    """Where an object is. Of a namespaced one without a namespace, '' is its namespace."""
    group, separator, dummy = text_at(found, "apiVersion").partition("/")
    return Place(group if separator else "", text_at(found, "kind"), text_at(found, "metadata", "namespace"), text_at(found, "metadata", "name"))


@dataclass(frozen=True)
class Live:
    """An object of a render, with its namespace, and the same as it is in the cluster. `tried`: as it would be after it was changed, where that was asked."""

    wanted: dict[str, Json] = field(repr=False)
    now: Observed[JsonMap] = field(default=Absent(), repr=False)
    tried: Observed[JsonMap] = field(default=Absent(), repr=False)

    @property
    def place(self) -> Place:
        return place_of(self.wanted)
