# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that the loop in a cluster needs, as Kubernetes objects (design section 18, role `runner`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from .access_policies import PART_OF, RUNNER, policies
from .access_roles import cluster_roles, runner_access
from .custom_resources import definitions
from .records import Json, JsonMap

_FOLDER = "/tmp/ichor"
#: Seconds after which a run is taken for dead that has to touch its file each minute.
_STALE = 180
#: What the container's init runs. A stop goes to the module, which ends its work, gives its leases back and lets the playbook end; ansible-playbook
#: itself would leave at once, and with it the container.
SCRIPT = """\
rm -f "$ICHOR_ALIVE_FILE"
ansible-playbook ichor.talos.runner "$@" &
playbook=$!
trap 'kill -TERM "$(cat "$ICHOR_ALIVE_FILE")" 2>/dev/null || kill -TERM "$playbook"' TERM INT
wait "$playbook"
result=$?
while kill -0 "$playbook" 2>/dev/null; do wait "$playbook"; result=$?; done
exit "$result"
"""
_WELL = f'test "$(( $(date +%s) - $(stat -c %Y "$ICHOR_ALIVE_FILE") ))" -lt {_STALE}'


@dataclass(frozen=True)
class RunnerSettings:
    """`image` is the execution environment. `variables` are those of the playbook that the container runs; `resources` as in a container,
    `pull_secrets` names of Secrets with the credential of the image's registry."""

    image: str
    namespace: str
    replicas: int = 2
    pull_secrets: tuple[str, ...] = ()
    variables: Mapping[str, Json] = field(default_factory=dict)
    resources: Mapping[str, Json] = field(default_factory=dict)
    node_selector: Mapping[str, Json] = field(default_factory=dict)


def manifests(settings: RunnerSettings) -> tuple[JsonMap, ...]:
    """All objects, in the order in which they are applied."""
    namespace: JsonMap = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.namespace}}
    return (namespace, *definitions(), *policies(), *cluster_roles(), *runner_access(settings.namespace), deployment(settings))


def file_of(made: JsonMap) -> str:
    """The name of an object's file in a folder of manifests."""
    metadata = made.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    return f"{str(made.get('kind')).lower()}-{name}.yaml"


def command(variables: Mapping[str, Json]) -> list[Json]:
    """The container's command."""
    given: list[Json] = ["--extra-vars", json.dumps(dict(variables), sort_keys=True)] if variables else []
    return ["dumb-init", "--single-child", "--", "sh", "-c", SCRIPT, "runner", *given]


def environment(namespace: str, folder: str = _FOLDER) -> dict[str, str]:
    """The variables of the container's process: it writes into that folder and nowhere else."""
    return {"ICHOR_STORE": "kubernetes", "ICHOR_STORE_NAMESPACE": namespace, "ICHOR_ALIVE_FILE": f"{folder}/alive", "HOME": folder,
            "ANSIBLE_HOME": f"{folder}/ansible", "ANSIBLE_REMOTE_TEMP": f"{folder}/remote", "ANSIBLE_LOCALHOST_WARNING": "0",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0", "ANSIBLE_NOCOLOR": "1", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def deployment(settings: RunnerSettings) -> JsonMap:
    """The Deployment. Its pods fit the Pod Security Standard `restricted`; one leads, and the others stand by on other nodes."""
    labels: dict[str, Json] = {"app.kubernetes.io/name": RUNNER, **PART_OF}
    selector: dict[str, Json] = {"matchLabels": {"app.kubernetes.io/name": RUNNER}}
    container: dict[str, Json] = {
        "name": "runner", "image": settings.image, "command": command(settings.variables),
        "env": [{"name": name, "value": value} for name, value in environment(settings.namespace).items()],
        "resources": dict(settings.resources) or {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        "startupProbe": _probe(5, 24), "readinessProbe": _probe(15, 1), "livenessProbe": _probe(30, 3),
    }
    spread: dict[str, Json] = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    pod: dict[str, Json] = {
        "serviceAccountName": RUNNER, "automountServiceAccountToken": True, "terminationGracePeriodSeconds": 30,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": spread}]}},
        "containers": [container], "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    if settings.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in settings.pull_secrets]
    if settings.node_selector:
        pod["nodeSelector"] = dict(settings.node_selector)
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": RUNNER, "namespace": settings.namespace, "labels": labels},
        "spec": {"replicas": settings.replicas, "selector": selector, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


def _probe(period: int, failures: int) -> dict[str, Json]:
    return {"exec": {"command": ["sh", "-c", _WELL]}, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}
