# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the API server and the controllers of Kubernetes fill into objects, as a table (design section 15).

A field that only the live object has is no difference where it holds what is filled in there. Whatever the table does not know is one: too many
differences are read by a person, too few would change something that nobody saw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Union

from .._model.records import Json, JsonMap

#: Stands for whatever value: the field is allotted, or belongs to a controller.
ANY = object()
Default = Union[object, Callable[[JsonMap], Json]]


@dataclass(frozen=True)
class Shape:
    """`fields`: the shapes below, of the entries where the field is a list or, with the key `*`, of every value. `filled`: what is filled into a
    field, a value, `ANY`, or a function of the live object around it. `dropped`: fields that are not kept when they hold nothing."""

    fields: Mapping[str, Shape] = field(default_factory=dict)
    filled: Mapping[str, Default] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()


def _pull_policy(container: JsonMap) -> Json:
    image = str(container.get("image") or "")
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if "@" not in image and tag in ("", "latest") else "IfNotPresent"


NOTHING = Shape()
_HTTP = Shape(filled={"scheme": "HTTP", "path": "/"})
_PROBE = Shape({"httpGet": _HTTP}, {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3})
_HANDLERS = Shape({"postStart": Shape({"httpGet": _HTTP}), "preStop": Shape({"httpGet": _HTTP})})
_FIELD = Shape(filled={"apiVersion": "v1"})
_RESOURCE_FIELD = Shape(filled={"divisor": "0"})
_ENV = Shape({"valueFrom": Shape({"fieldRef": _FIELD, "resourceFieldRef": _RESOURCE_FIELD})}, dropped=frozenset({"value"}))
_PORT = Shape(filled={"protocol": "TCP", "hostPort": lambda port: port.get("containerPort")})
_CONTAINER = Shape(
    {"env": _ENV, "ports": _PORT, "livenessProbe": _PROBE, "readinessProbe": _PROBE, "startupProbe": _PROBE, "lifecycle": _HANDLERS,
     "volumeMounts": Shape(dropped=frozenset({"readOnly"}))},
    {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": _pull_policy},
    frozenset({"stdin", "tty"}))
_ITEM = Shape({"fieldRef": _FIELD, "resourceFieldRef": _RESOURCE_FIELD})
_FILES = Shape({"items": _ITEM}, {"defaultMode": 420})
_PROJECTED = Shape({"sources": Shape({"downwardAPI": Shape({"items": _ITEM}), "serviceAccountToken": Shape(filled={"expirationSeconds": 3600})})},
                   {"defaultMode": 420})
_VOLUME = Shape({"configMap": _FILES, "secret": _FILES, "downwardAPI": _FILES, "projected": _PROJECTED, "hostPath": Shape(filled={"type": ""})})
_POD_SPEC = Shape(
    {"containers": _CONTAINER, "initContainers": _CONTAINER, "volumes": _VOLUME},
    {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30,
     "serviceAccount": lambda spec: spec.get("serviceAccountName")},
    frozenset({"hostNetwork", "hostPID", "hostIPC"}))
#: Restarted by hand: that is an event, and taking the mark away would be another restart.
_RESTARTED = Shape({"annotations": Shape(filled={"kubectl.kubernetes.io/restartedAt": ANY})}, {"creationTimestamp": ANY})
_TEMPLATE = Shape({"metadata": _RESTARTED, "spec": _POD_SPEC})

_DAEMON_SET = Shape(
    {"template": _TEMPLATE, "updateStrategy": Shape({"rollingUpdate": Shape(filled={"maxSurge": 0, "maxUnavailable": 1})}, {"type": "RollingUpdate"})},
    {"revisionHistoryLimit": 10}, frozenset({"minReadySeconds"}))
_DEPLOYMENT = Shape(
    {"template": _TEMPLATE, "strategy": Shape({"rollingUpdate": Shape(filled={"maxSurge": "25%", "maxUnavailable": "25%"})}, {"type": "RollingUpdate"})},
    {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}, frozenset({"minReadySeconds", "paused"}))
_JOB_LABELS = Shape(filled={name: ANY for name in ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")})
_JOB = Shape(
    {"template": Shape({"metadata": Shape({"labels": _JOB_LABELS}, {"creationTimestamp": ANY}), "spec": _POD_SPEC})},
    {"backoffLimit": 6, "completions": 1, "parallelism": 1, "completionMode": "NonIndexed", "suspend": False, "podReplacementPolicy": "TerminatingOrFailed",
     "manualSelector": False, "selector": ANY})
_CRON_JOB = Shape({"jobTemplate": Shape({"metadata": Shape(filled={"creationTimestamp": ANY}), "spec": _JOB})}, {
    "concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1})
_SERVICE = Shape(
    {"ports": Shape(filled={"protocol": "TCP", "targetPort": lambda port: port.get("port"), "nodePort": ANY})},
    {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster", "clusterIP": ANY,
     "clusterIPs": ANY, "ipFamilies": ANY, "ipFamilyPolicy": ANY, "healthCheckNodePort": ANY, "allocateLoadBalancerNodePorts": True,
     "sessionAffinityConfig": ANY}, frozenset({"publishNotReadyAddresses"}))
_WEBHOOK = Shape(
    {"rules": Shape(filled={"scope": "*"}), "clientConfig": Shape({"service": Shape(filled={"port": 443})})},
    {"matchPolicy": "Equivalent", "timeoutSeconds": 10, "failurePolicy": "Fail", "reinvocationPolicy": "Never"})
_ROLE_REF = Shape(filled={"apiGroup": "rbac.authorization.k8s.io"}, dropped=frozenset({"apiGroup"}))
_BINDING = Shape({"roleRef": _ROLE_REF, "subjects": _ROLE_REF})
_DEFINITION = Shape(
    {"names": Shape(filled={"listKind": ANY, "singular": ANY}), "conversion": Shape(filled={"strategy": "None"})}, {"preserveUnknownFields": False})

#: What Helm itself puts on the objects that it makes.
_HELM_LABELS: Mapping[str, Default] = {"app.kubernetes.io/managed-by": "Helm"}
METADATA = Shape(
    {"annotations": Shape(filled={name: ANY for name in (
        "meta.helm.sh/release-name", "meta.helm.sh/release-namespace", "deployment.kubernetes.io/revision",
        "deprecated.daemonset.template.generation", "kubectl.kubernetes.io/last-applied-configuration")}),
     "labels": Shape(filled=_HELM_LABELS)},
    {name: ANY for name in ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences", "finalizers",
                            "deletionTimestamp", "deletionGracePeriodSeconds")})

_SPECS: Mapping[str, Shape] = {
    "DaemonSet": _DAEMON_SET, "Deployment": _DEPLOYMENT, "StatefulSet": Shape(
        {"template": _TEMPLATE, "updateStrategy": Shape({"rollingUpdate": Shape(filled={"partition": 0})}, {"type": "RollingUpdate"})},
        {"replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
         "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"}}),
    "Job": _JOB, "CronJob": _CRON_JOB, "Service": _SERVICE, "CustomResourceDefinition": _DEFINITION, "Namespace": Shape(filled={"finalizers": ANY}),
}
_OBJECTS: Mapping[str, Shape] = {
    "MutatingWebhookConfiguration": Shape({"webhooks": _WEBHOOK}), "ValidatingWebhookConfiguration": Shape({"webhooks": _WEBHOOK}),
    "ClusterRoleBinding": _BINDING, "RoleBinding": _BINDING, "ServiceAccount": Shape(filled={"secrets": ANY}),
    "Secret": Shape(filled={"type": "Opaque"}),
    "PriorityClass": Shape(filled={"preemptionPolicy": "PreemptLowerPriority"}, dropped=frozenset({"globalDefault"})),
}


def shape_of(kind: str) -> Shape:
    """The shape of a whole object of a kind; of an unknown kind only what every object has."""
    own = _OBJECTS.get(kind, NOTHING)
    metadata = METADATA
    if kind == "Namespace":
        metadata = Shape({**METADATA.fields, "labels": Shape(filled={**_HELM_LABELS, "kubernetes.io/metadata.name": ANY})}, METADATA.filled)
    fields = {**own.fields, "metadata": metadata, **({"spec": _SPECS[kind]} if kind in _SPECS else {})}
    return Shape(fields, {**own.filled, "status": ANY}, own.dropped)
