# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A configuration as Talos's own generator makes it, for the contracts 1.12, 1.13 and 1.14.

Only the shape is here; what a cluster or a machine adds comes as layers on top (render.py).
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import go_url, problem
from .documents import Config, Document, arrange
from .generate_documents import documents_1_14
from .kubernetes_defaults import audit_policy, pod_security
from .problem import ConfigProblem
from .schema import LEGACY, schema
from .secrets import Bundle

POD_SUBNET = "10.244.0.0/16"
SERVICE_SUBNET = "10.96.0.0/12"
DEFAULT_KUBEPRISM_PORT = 7445
EXCLUDE_FROM_LOAD_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers"


@dataclass(frozen=True)
class GenerateInput:
    """What the generator takes, with the defaults of `talosctl gen config`. Versions are without `v`.

    install_disk "" leaves the disk out (1.14: the whole install document); registry_mirrors: host → endpoint URLs;
    registry_ca: host → PEM; registry_insecure: hosts whose certificate is not checked; discovery False turns the service off.
    """

    cluster_name: str
    endpoint: str
    kubernetes_version: str
    install_image: str
    bundle: Bundle = field(repr=False)
    install_disk: str = "/dev/sda"
    additional_sans: tuple[str, ...] = ()
    dns_domain: str = "cluster.local"
    pod_subnets: tuple[str, ...] = (POD_SUBNET,)
    service_subnets: tuple[str, ...] = (SERVICE_SUBNET,)
    discovery: bool = True
    kubespan: bool = False
    registry_mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    registry_ca: Mapping[str, str] = field(default_factory=dict)
    registry_insecure: frozenset[str] = frozenset()
    custom_cni_url: str = ""
    allow_scheduling_on_control_planes: bool = False
    sysctls: Mapping[str, str] = field(default_factory=dict)
    local_api_server_port: int = 0
    kubeprism_port: int = DEFAULT_KUBEPRISM_PORT


def parse_endpoint(text: str) -> go_url.URL:
    """The control-plane endpoint; https only. Raises ConfigProblem (InvalidInput)."""
    try:
        url = go_url.parse(text)
    except ValueError as error:
        raise ConfigProblem(problem.INVALID_INPUT, f"the endpoint is no URL: {error}", path="endpoint") from None
    if url.scheme != "https" or not url.hostname:
        raise ConfigProblem(
            problem.INVALID_INPUT, "the endpoint has to be an https URL with a host", hint="Write it as https://address:6443.", path="endpoint",
        )
    return url


def generate(given: GenerateInput, role: str, contract: str, version: str = "") -> Config:
    """The configuration of one machine of that role (`controlplane`, `worker`). version: the schema, the contract's when not said."""
    if role not in ("controlplane", "worker"):
        raise ConfigProblem(problem.INVALID_INPUT, "the role has to be controlplane or worker", path="role")
    endpoint = parse_endpoint(given.endpoint)
    kubernetes = given.kubernetes_version.removeprefix("v")
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*", kubernetes):
        raise ConfigProblem(problem.INVALID_INPUT, "the Kubernetes version has to look like 1.35.0", path="kubernetesVersion")
    version = version or contract
    kinds = schema(version)
    control_plane = role == "controlplane"
    documents = [Document(kinds.kind(LEGACY), _legacy(given, endpoint, kubernetes, control_plane, contract))]

    def add(kind: str, data: dict[str, Any]) -> None:
        documents.append(Document(kinds.kind(kind), data))

    if contract == "1.14":
        for kind, data in documents_1_14(given, endpoint, kubernetes, control_plane, _registries(given)):
            add(kind, data)
    else:
        for kind, data in _registries(given):
            add(kind, data)
        add("HostnameConfig", {"auto": "stable"})
        if given.kubespan and contract != "1.12":
            add("KubeSpanConfig", {"enabled": True})
    result = arrange(version, documents)
    result.shape = contract
    return result


def _registries(given: GenerateInput) -> list[tuple[str, dict[str, Any]]]:
    result: list[tuple[str, dict[str, Any]]] = []
    for host in sorted(given.registry_mirrors):
        endpoints = [{"url": _url(endpoint, f"registries.{host}")} for endpoint in given.registry_mirrors[host]]
        result.append(("RegistryMirrorConfig", {"name": host, "endpoints": endpoints}))
    for host in sorted({*given.registry_ca, *given.registry_insecure}):
        data: dict[str, Any] = {"name": host}
        if given.registry_ca.get(host):
            data["ca"] = given.registry_ca[host]
        if host in given.registry_insecure:
            data["insecureSkipVerify"] = True
        result.append(("RegistryTLSConfig", data))
    return result


def _url(text: str, path: str) -> go_url.URL:
    try:
        return go_url.parse(text)
    except ValueError as error:
        raise ConfigProblem(problem.INVALID_INPUT, f"this is no URL: {error}", path=path) from None


def _legacy(given: GenerateInput, endpoint: go_url.URL, kubernetes: str, control_plane: bool, contract: str) -> dict[str, Any]:
    """The document without a kind."""
    bundle = given.bundle
    machine: dict[str, Any] = {
        "type": "controlplane" if control_plane else "worker", "token": bundle.trustd_token, "ca": _ca(bundle.os.encoded(), control_plane),
        "certSANs": list(given.additional_sans), "features": {"diskQuotaSupport": True},
    }
    cluster: dict[str, Any] = {"token": bundle.bootstrap_token}
    if control_plane:
        cluster["etcd"] = {"ca": bundle.etcd.encoded()}
    if contract != "1.14":
        _add_legacy_machine(machine, given, kubernetes, control_plane, contract)
        _add_legacy_cluster(cluster, given, endpoint, kubernetes, control_plane)
    return {"version": "v1alpha1", "debug": False, "persist": True, "machine": machine, "cluster": _without_zeros(cluster)}


def _ca(pair: dict[str, str], control_plane: bool) -> dict[str, str]:
    return pair if control_plane else {"crt": pair["crt"], "key": ""}


def _without_zeros(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value != ""}


def _add_legacy_machine(machine: dict[str, Any], given: GenerateInput, kubernetes: str, control_plane: bool, contract: str) -> None:
    machine["kubelet"] = {
        "image": f"ghcr.io/siderolabs/kubelet:v{kubernetes}", "defaultRuntimeSeccompProfileEnabled": True, "disableManifestsDirectory": True,
    }
    if contract == "1.12":
        machine["network"] = {"kubespan": {"enabled": True}} if given.kubespan else {}
    machine["install"] = _without_zeros({
        "disk": given.install_disk, "image": given.install_image, "wipe": False, "grubUseUKICmdline": True,
    })
    if given.sysctls:
        machine["sysctls"] = dict(given.sysctls)
    if given.kubeprism_port:
        machine["features"]["kubePrism"] = {"enabled": True, "port": given.kubeprism_port}
    machine["features"]["hostDNS"] = {"enabled": True, "forwardKubeDNSToHost": True}
    if control_plane:
        machine["nodeLabels"] = {EXCLUDE_FROM_LOAD_BALANCERS: ""}


def _add_legacy_cluster(cluster: dict[str, Any], given: GenerateInput, endpoint: go_url.URL, kubernetes: str, control_plane: bool) -> None:
    bundle = given.bundle
    control_plane_section: dict[str, Any] = {"endpoint": endpoint}
    if given.local_api_server_port and control_plane:
        control_plane_section["localAPIServerPort"] = given.local_api_server_port
    network: dict[str, Any] = {
        "dnsDomain": given.dns_domain, "podSubnets": list(given.pod_subnets), "serviceSubnets": list(given.service_subnets),
    }
    if given.custom_cni_url:
        network["cni"] = {"name": "custom", "urls": [_url(given.custom_cni_url, "cni.url").text()]}
    cluster.update({
        "id": bundle.cluster_id, "secret": bundle.cluster_secret, "controlPlane": control_plane_section, "clusterName": given.cluster_name,
        "network": network, "ca": _ca(bundle.k8s.encoded(), control_plane),
        "discovery": {"enabled": given.discovery, "registries": {"kubernetes": {"disabled": True}}},
    })
    if not control_plane:
        return
    api_server: dict[str, Any] = {
        "image": f"registry.k8s.io/kube-apiserver:v{kubernetes}",
        "admissionControl": [{"name": "PodSecurity", "configuration": pod_security()}], "auditPolicy": audit_policy(),
    }
    if given.additional_sans:
        api_server["certSANs"] = list(given.additional_sans)
    cluster.update({
        "secretboxEncryptionSecret": bundle.secretbox, "aggregatorCA": bundle.aggregator.encoded(),
        "serviceAccount": {"key": bundle.service_account.encoded()["key"]}, "apiServer": api_server,
        "controllerManager": {"image": f"registry.k8s.io/kube-controller-manager:v{kubernetes}"},
        "proxy": {"image": f"registry.k8s.io/kube-proxy:v{kubernetes}"},
        "scheduler": {"image": f"registry.k8s.io/kube-scheduler:v{kubernetes}"},
    })
    if given.allow_scheduling_on_control_planes:
        cluster["allowSchedulingOnControlPlanes"] = True
