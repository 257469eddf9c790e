# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pods of one Node, the volumes of the cluster and its PodDisruptionBudgets, as they are read (design section 14)."""

from __future__ import annotations

from .._model.records import Json, JsonMap, dig, list_at, text_at
from .._model.workloads import Budget, Pod, Requirement, Volume
from .api import Api
from .asking import is_ready, listed

_MIRROR = "kubernetes.io/config.mirror"


def read_pods(api: Api, node: str) -> tuple[Pod, ...]:
    """Every pod that is bound to the Node. Raises TalosError."""
    return tuple(_pod(item) for item in listed(api, "/api/v1/pods", f"the pods of {node}", {"fieldSelector": f"spec.nodeName={node}"}))


def read_volumes(api: Api) -> tuple[Volume, ...]:
    """Every PersistentVolume that is bound to a claim. Raises TalosError."""
    return tuple(_volume(item) for item in listed(api, "/api/v1/persistentvolumes", "its volumes") if text_at(item, "spec", "claimRef", "name"))


def read_budgets(api: Api) -> tuple[Budget, ...]:
    """Every PodDisruptionBudget. Raises TalosError."""
    return tuple(_budget(item) for item in listed(api, "/apis/policy/v1/poddisruptionbudgets", "its PodDisruptionBudgets"))


def _pod(item: JsonMap) -> Pod:
    metadata = item.get("metadata")
    owner = next((entry for entry in list_at(metadata, "ownerReferences") if dig(entry, "controller") is True), None)
    name = text_at(metadata, "name")
    claims, scratch, paths = _storage(item, name)
    return Pod(text_at(metadata, "namespace"), name, text_at(metadata, "uid"), text_at(item, "status", "phase"), text_at(owner, "kind"), text_at(owner, "name"),
               dig(metadata, "annotations", _MIRROR) is not None, bool(text_at(metadata, "deletionTimestamp")), is_ready(item), _texts(dig(metadata, "labels")),
               claims, scratch, paths)


def _storage(item: JsonMap, pod: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Claims, emptyDirs on a disk, and writable folders of the node."""
    writable = {text_at(mount, "name") for group in ("containers", "initContainers") for container in list_at(item, "spec", group)
                for mount in list_at(container, "volumeMounts") if dig(mount, "readOnly") is not True}
    claims: list[str] = []
    scratch: list[str] = []
    paths: list[str] = []
    for volume in list_at(item, "spec", "volumes"):
        name = text_at(volume, "name")
        if text_at(volume, "persistentVolumeClaim", "claimName"):
            claims.append(text_at(volume, "persistentVolumeClaim", "claimName"))
        elif dig(volume, "ephemeral") is not None:
            claims.append(f"{pod}-{name}")  # the name that Kubernetes gives the claim of a generic ephemeral volume
        elif dig(volume, "emptyDir") is not None and text_at(volume, "emptyDir", "medium") != "Memory":
            scratch.append(name)
        elif text_at(volume, "hostPath", "path") and name in writable:
            paths.append(text_at(volume, "hostPath", "path"))
    return tuple(claims), tuple(scratch), tuple(paths)


def _volume(item: JsonMap) -> Volume:
    spec = item.get("spec")
    places: list[tuple[str, ...]] = []
    for term in list_at(spec, "nodeAffinity", "required", "nodeSelectorTerms"):
        expressions = [*list_at(term, "matchExpressions"), *list_at(term, "matchFields")]
        asked = [[value for value in list_at(entry, "values") if isinstance(value, str)] for entry in expressions if text_at(entry, "operator") == "In"]
        places.append(tuple(values[0] for values in asked if len(values) == 1))
    return Volume(text_at(item, "metadata", "name"), text_at(spec, "claimRef", "namespace"), text_at(spec, "claimRef", "name"),
                  dig(spec, "local") is not None or dig(spec, "hostPath") is not None, tuple(places))


def _budget(item: JsonMap) -> Budget:
    found = dig(item, "spec", "selector")
    selector: tuple[Requirement, ...] | None = None
    if isinstance(found, dict):
        labels = [Requirement(key, "In", (value,)) for key, value in sorted(_texts(found.get("matchLabels")).items())]
        selector = (*labels, *(_requirement(entry) for entry in list_at(found, "matchExpressions")))
    allowed = dig(item, "status", "disruptionsAllowed")
    return Budget(text_at(item, "metadata", "namespace"), text_at(item, "metadata", "name"), selector, allowed if isinstance(allowed, int) else 0)


def _requirement(entry: Json) -> Requirement:
    return Requirement(text_at(entry, "key"), text_at(entry, "operator"), tuple(value for value in list_at(entry, "values") if isinstance(value, str)))


def _texts(found: Json) -> dict[str, str]:
    return {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}
