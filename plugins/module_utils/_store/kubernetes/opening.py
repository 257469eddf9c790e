# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Opens and installs a Kubernetes store (design section 4)."""

from __future__ import annotations

from ..._kube.access import Access, open_api
from ..._kube.api import Api, ApiRefused
from ..._kube.objects import apply
from ..._model.custom_resources import definitions
from ..._model.errors import TalosError
from ..._model.ports import Clock
from ..._model.records import API_VERSION, Json, JsonMap, dig, list_at, text_at
from ..._model.schema import SCHEMAS
from ..._model.timing import Timing
from .leases import KubernetesLeases
from .refusals import doing
from .store import KubernetesStore

NAMESPACE = "ichor-system"
#: Seconds that an API server gets to serve a resource that was just defined.
_SERVED_WITHIN = 30.0


def open_store(access: Access, namespace: str = NAMESPACE, *, clock: Clock, create: bool = False, check: bool = False,
               renewal: float = Timing.lock_renewal, api: Api | None = None) -> KubernetesStore:
    """The store in a namespace. Where its resources are not defined it is `StoreMissing`; with `create` they and the namespace are
    made, with `check` too nothing is written and the store that would be made is an empty one."""
    api = api or open_api(access)
    would_be = False
    with doing("look for the store", api):
        missing = _undefined(api)
        if missing and not create:
            raise TalosError("StoreMissing", f"The Kubernetes API server {api.host} does not know {', '.join(missing)}: there is no store.",
                             "Create it with talos_cluster, or install it with the playbook runner_install.")
        if create and check:
            would_be = bool(missing)
        elif create:
            install(api, namespace, clock, missing)
    return KubernetesStore(api, namespace, clock, KubernetesLeases(api, namespace, clock, renewal=renewal), would_be=would_be)


def install(api: Api, namespace: str, clock: Clock, missing: tuple[str, ...]) -> None:
    """Define the resources that are missing and make the namespace where it is not there. Raises ApiRefused, ApiSilent."""
    for definition in definitions():
        if dig(definition, "spec", "names", "plural") in missing:
            apply(api, definition)
    if api.get(f"/api/v1/namespaces/{namespace}") is None:
        apply(api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    if missing:
        wait_until_served(api, namespace, clock)


def wait_until_served(api: Api, namespace: str, clock: Clock) -> None:
    """Give the API server a moment to serve resources that were just defined. Raises ApiRefused, ApiSilent."""
    until = clock.monotonic() + _SERVED_WITHIN
    while _unserved(api, namespace) and clock.monotonic() < until:
        api.pause(0.1)


def _undefined(api: Api) -> tuple[str, ...]:
    """Plurals of the kinds that the API server does not serve."""
    try:
        answer: JsonMap = api.request("GET", f"/apis/{API_VERSION}")
    except ApiRefused as refused:
        if refused.status != 404:
            raise
        answer = {}
    served: set[Json] = {text_at(resource, "name") for resource in list_at(answer, "resources")}
    return tuple(schema.plural for schema in SCHEMAS.values() if schema.plural not in served)


def _unserved(api: Api, namespace: str) -> bool:
    if _undefined(api):
        return True
    for schema in SCHEMAS.values():
        try:
            api.request("GET", f"/apis/{API_VERSION}/namespaces/{namespace}/{schema.plural}", query={"limit": "1"})
        except ApiRefused as refused:
            if refused.status == 404:
                return True
            raise
    return False
