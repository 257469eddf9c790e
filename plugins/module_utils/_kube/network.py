# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which container network a cluster has, as its DaemonSets and Nodes tell (design section 15)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._model.container_network import Installer, NetworkSeen, Release, images_of
from .._model.observed import Absent, Observed, Present
from .._model.records import Json, JsonMap, dig, list_at, text_at
from .api import Api, ApiRefused, ApiSilent
from .asking import failed, listed
from .helm_release import read_release, release_elsewhere
from .objects import FIELD_MANAGER

#: Where the runtime looks for the configuration of a network.
_FOLDER = "/etc/cni/net.d"
_IMAGES = ("/cilium/cilium", "flannel", "calico/node", "weave-kube", "kube-router", "kube-ovn", "antrea", "ovn-kubernetes", "amazon-k8s-cni")
#: Images that put further networks beside the one that the cluster has.
_BESIDE = ("multus", "whereabouts", "sriov", "istio", "linkerd")
#: What a kubelet says whose runtime has no network.
_WITHOUT = ("NetworkReady=false", "NetworkPluginNotReady", "cni plugin")
#: How the API server tells all of its kinds at once (Kubernetes 1.30 and later); an older one tells its groups.
_KINDS = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
#: What a version of a group, and a kind in it, is made of.
_API = re.compile(r"[A-Za-z0-9./-]+\Z")
_RELEASE = ("meta.helm.sh/release-namespace", "meta.helm.sh/release-name")


def look(api: Api) -> NetworkSeen:
    """What there is of a network. Raises TalosError where the API server does not answer or does not tell."""
    sets = listed(api, "/apis/apps/v1/daemonsets", "its DaemonSets")
    installers = tuple(_installer(item) for item in sets if _installs(item))
    cilium = next((one for one in installers if text_at(one.labels, "k8s-app") == "cilium" or "/cilium/cilium" in " ".join(one.images)), None)
    release: Observed[Release] = Absent()
    ipam: Observed[str] = Absent()
    elsewhere = ""
    if cilium is not None:
        namespace, name = cilium.release if all(cilium.release) else (cilium.namespace, "cilium")
        release = read_release(api, namespace, name)
        if all(cilium.release) and isinstance(release, Absent):
            elsewhere = release_elsewhere(api, namespace, name)
        ipam = _ipam(api, cilium.namespace)
    return NetworkSeen(installers, release, ipam, *_nodes(api), any(_is_proxy(item) for item in sets), _version(api), _apis(api), elsewhere)


def _installs(item: JsonMap) -> bool:
    images = " ".join(images_of(item))
    if any(word in images for word in _BESIDE):
        return False
    folders = [text_at(volume, "hostPath", "path").rstrip("/") for volume in list_at(item, "spec", "template", "spec", "volumes")]
    return _FOLDER in folders or any(word in images for word in _IMAGES) and not text_at(item, "metadata", "name").startswith("cilium-")


def _installer(item: JsonMap) -> Installer:
    metadata = item.get("metadata")
    labels = dig(metadata, "labels")
    managers = [text_at(entry, "manager") for entry in list_at(metadata, "managedFields") if text_at(entry, "subresource") != "status"]
    return Installer(text_at(metadata, "namespace"), text_at(metadata, "name"), labels if isinstance(labels, dict) else {}, images_of(item),
                     (text_at(metadata, "annotations", _RELEASE[0]), text_at(metadata, "annotations", _RELEASE[1])), FIELD_MANAGER in managers)


def _is_proxy(item: JsonMap) -> bool:
    return text_at(item, "metadata", "name") == "kube-proxy"


def _ipam(api: Api, namespace: str) -> Observed[str]:
    """How Cilium numbers pods, by the ConfigMap that its agents read."""
    path = f"/api/v1/namespaces/{namespace}/configmaps/cilium-config"
    try:
        found = api.get(path)
    except (ApiSilent, ApiRefused) as error:
        raise failed(api, f"GET {path}", "does not tell how Cilium is configured", error) from None
    mode = text_at(found, "data", "ipam") if found is not None else ""
    return Present(mode) if mode else Absent()


def _nodes(api: Api) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Names of Nodes: those that say that they have no network, those that are Ready, and the others."""
    waiting: list[str] = []
    ready: list[str] = []
    silent: list[str] = []
    for item in listed(api, "/api/v1/nodes", "its Nodes"):
        condition: Json = next((entry for entry in list_at(item, "status", "conditions") if text_at(entry, "type") == "Ready"), None)
        state, said = text_at(condition, "status"), text_at(condition, "message")
        without = state == "False" and any(word in said for word in _WITHOUT)
        (waiting if without else ready if state == "True" else silent).append(text_at(item, "metadata", "name"))
    return tuple(waiting), tuple(ready), tuple(silent)


def _version(api: Api) -> str:
    try:
        return text_at(api.request("GET", "/version"), "gitVersion")
    except (ApiSilent, ApiRefused) as error:
        raise failed(api, "GET /version", "does not tell its version", error) from None


def _apis(api: Api) -> tuple[str, ...]:
    """What the API server serves, as Helm's charts ask for it: `group/version` and `group/version/Kind`."""
    found: set[str] = set()
    for path in ("/api", "/apis"):
        try:
            found.update(_served(api.request("GET", path, accept=_KINDS)))
        except (ApiSilent, ApiRefused) as error:
            raise failed(api, f"GET {path}", "does not tell its kinds", error) from None
    return tuple(sorted(one for one in found if _API.match(one)))


def _served(answer: JsonMap) -> Iterator[str]:
    yield from (version for version in list_at(answer, "versions") if isinstance(version, str))
    for group in list_at(answer, "groups"):
        yield from (text_at(version, "groupVersion") for version in list_at(group, "versions"))
    for group in list_at(answer, "items"):
        name = text_at(group, "metadata", "name")
        for version in list_at(group, "versions"):
            served = f"{name}/{text_at(version, 'version')}" if name else text_at(version, "version")
            yield served
            yield from (f"{served}/{text_at(resource, 'responseKind', 'kind')}" for resource in list_at(version, "resources"))
