# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each role may ask of the API server, one row for each need (design sections 4, 18).

Viewers, operators and admins are ClusterRoles, to be bound in the namespace of the records. The runner has a role of its own there, and
never the verb `approve`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .access_policies import PART_OF, RUNNER
from .custom_resources import GROUP
from .records import BACKUP, CLUSTER, CONFIG_PATCH, MACHINE, RECLAIM, Json, JsonMap
from .schema import SCHEMAS

RBAC = "rbac.authorization.k8s.io"
_LEASES = "coordination.k8s.io"


@dataclass(frozen=True)
class Grant:
    """Verbs on resources of one API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


def _records(*kinds: str, part: str = "") -> tuple[str, ...]:
    return tuple(SCHEMAS[kind].plural + (f"/{part}" if part else "") for kind in kinds)


_SEES = (
    Grant(GROUP, _records(*SCHEMAS), ("get", "list", "watch")),
    Grant("", ("events",), ("list",)),
)
#: What every run needs that does something: locks, what happened, the keys of the cluster, what was seen and done.
_ACTS = (
    Grant(GROUP, _records(CLUSTER, MACHINE, RECLAIM, BACKUP, part="status"), ("patch",)),
    Grant(_LEASES, ("leases",), ("get", "create", "update")),
    Grant("", ("events",), ("get", "create", "patch")),
    Grant("", ("secrets",), ("get",)),
)
_VIEWER = (*_SEES, Grant(_LEASES, ("leases",), ("get",)))
_OPERATOR = (
    *_SEES, *_ACTS,
    Grant(GROUP, _records(MACHINE, CONFIG_PATCH), ("create", "patch", "delete")),
    Grant(GROUP, _records(RECLAIM), ("create", "delete")),
    Grant(GROUP, (*_records(MACHINE, part="approval"), *_records(RECLAIM)), ("approve",)),
)
_ADMIN = (
    *_OPERATOR,
    Grant(GROUP, _records(CLUSTER, BACKUP), ("create", "patch", "delete")),
    Grant(GROUP, _records(BACKUP), ("approve",)),
    Grant("", ("secrets",), ("create", "patch")),
)
#: ClusterRoles by name.
ROLES: dict[str, tuple[Grant, ...]] = {"ichor-talos-viewer": _VIEWER, "ichor-talos-operator": _OPERATOR, "ichor-talos-admin": _ADMIN}
#: The runner finds machines and makes their pending records; every other spec is people's.
RUNNER_GRANTS: tuple[Grant, ...] = (*_SEES, *_ACTS, Grant(GROUP, _records(MACHINE), ("create",)))


def cluster_roles() -> tuple[JsonMap, ...]:
    """The roles of people, as ClusterRoles."""
    return tuple({"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name, "labels": {**PART_OF}}, "rules": _rules(grants)}
                 for name, grants in ROLES.items())


def runner_access(namespace: str) -> tuple[JsonMap, ...]:
    """The runner's account in a namespace, its role, and the binding between the two."""
    subject: dict[str, Json] = {"kind": "ServiceAccount", "name": RUNNER, "namespace": namespace}
    metadata: dict[str, Json] = {"name": RUNNER, "namespace": namespace, "labels": {**PART_OF}}
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False},
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": _rules(RUNNER_GRANTS)},
        {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": metadata, "subjects": [subject],
         "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": RUNNER}},
    )


def _rules(grants: tuple[Grant, ...]) -> list[Json]:
    return [{"apiGroups": [grant.group], "resources": list(grant.resources), "verbs": list(grant.verbs)} for grant in grants]
