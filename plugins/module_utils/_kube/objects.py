# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of any kind that this product installs, by server-side apply (design section 4)."""

from __future__ import annotations

from .._model.records import JsonMap, text_at
from .api import Api, ApiRefused

#: Who these writes are by, in `managedFields`.
FIELD_MANAGER = "ichor.talos"
APPLY_PATCH = "application/apply-patch+yaml"

_PLURALS = {
    "Namespace": "namespaces", "ServiceAccount": "serviceaccounts", "Role": "roles", "RoleBinding": "rolebindings", "ClusterRole": "clusterroles",
    "Deployment": "deployments", "CustomResourceDefinition": "customresourcedefinitions", "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


def path_of(wanted: JsonMap) -> str:
    """Where the API server has the object. Raises ValueError for a kind that is never installed."""
    kind, version = text_at(wanted, "kind"), text_at(wanted, "apiVersion")
    if kind not in _PLURALS:
        raise ValueError(f"{kind} is no kind of object that is installed")
    namespace = text_at(wanted, "metadata", "namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}{f'/namespaces/{namespace}' if namespace else ''}/{_PLURALS[kind]}/{text_at(wanted, 'metadata', 'name')}"


def read(api: Api, wanted: JsonMap) -> JsonMap | None:
    """The object as it is, or None. Raises ApiRefused, ApiSilent."""
    return api.get(path_of(wanted))


def apply(api: Api, wanted: JsonMap) -> JsonMap:
    """Make the object as it is wanted; fields that it does not name stay as others have them. Raises ApiRefused, ApiSilent."""
    return _patched(api, wanted, {})


def as_applied(api: Api, wanted: JsonMap) -> JsonMap:
    """What `apply` would make of the object, with nothing written. Raises ApiRefused, ApiSilent."""
    try:
        return _patched(api, wanted, {"dryRun": "All"})
    except ApiRefused as refused:
        if refused.status != 404:
            raise
        return wanted  # its namespace is not there yet


def _patched(api: Api, wanted: JsonMap, query: dict[str, str]) -> JsonMap:
    return api.request("PATCH", path_of(wanted), wanted, query={"fieldManager": FIELD_MANAGER, "force": "true", **query}, content_type=APPLY_PATCH)
