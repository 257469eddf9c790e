# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documents that contract 1.14 has instead of sections of the legacy document, in Talos's order."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import go_url, problem
from .cel import device_path
from .kubernetes_defaults import audit_policy, authentication, pod_security
from .problem import ConfigProblem

if TYPE_CHECKING:
    from .generate import GenerateInput

_CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
_EXCLUDE = "node.kubernetes.io/exclude-from-external-load-balancers"
_WEEK = 168 * 3600 * 10**9
DISCOVERY_SERVICE = "https://discovery.talos.dev/"


def documents_1_14(
    given: GenerateInput, endpoint: go_url.URL, kubernetes: str, control_plane: bool, registries: list[tuple[str, dict[str, Any]]],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, data) of every document but the legacy one."""
    bundle = given.bundle
    if given.discovery:
        yield "DiscoveryServiceConfig", {"name": "default", "endpoint": go_url.parse(DISCOVERY_SERVICE)}
    yield "DiscoveryIdentityConfig", {"clusterID": bundle.cluster_id, "clusterSecret": bundle.cluster_secret}
    if given.install_disk:
        installer = {"image": given.install_image} if given.install_image else {}
        yield "UnattendedInstallConfig", {
            **({"installer": installer} if installer else {}),
            "provisioning": {"diskSelector": {"match": device_path(given.install_disk)}, "wipe": False},
        }
    yield "ResolverConfig", {"hostDNS": {"enabled": True, "forwardKubeDNSToHost": True}}
    if given.sysctls:
        yield "SysctlConfig", {"params": dict(given.sysctls)}
    yield "VolumeConfig", {"name": "EPHEMERAL", "mount": {"secure": True}}
    yield "FilesystemTrimConfig", {"interval": _WEEK}
    yield "SecurityProfileConfig", {"workloadIsolation": True}
    yield from registries
    yield "HostnameConfig", {"auto": "stable"}
    if given.kubespan:
        yield "KubeSpanConfig", {"enabled": True}
    yield from _kubernetes(given, endpoint, kubernetes, control_plane)
    if control_plane:
        yield from _control_plane(given, endpoint, kubernetes)


def _kubernetes(given: GenerateInput, endpoint: go_url.URL, kubernetes: str, control_plane: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    k8s = given.bundle.k8s
    yield "KubeClusterConfig", {"clusterName": given.cluster_name, "endpoint": endpoint}
    node: dict[str, Any] = {}
    if control_plane:
        node["labels"] = {_CONTROL_PLANE_LABEL: "", _EXCLUDE: ""}
        if not given.allow_scheduling_on_control_planes:
            node["taints"] = {_CONTROL_PLANE_LABEL: "NoSchedule"}
    yield "KubeNodeConfig", node
    yield "KubeletConfig", {"image": f"ghcr.io/siderolabs/kubelet:v{kubernetes}", "defaultRuntimeSeccompProfileEnabled": True}
    yield "KubeNetworkConfig", {
        "dnsDomain": given.dns_domain, "podSubnets": list(given.pod_subnets), "serviceSubnets": list(given.service_subnets),
    }
    yield "KubeAPIServerCAConfig", {"issuingCA": {"cert": k8s.crt, "key": k8s.key}} if control_plane else {"acceptedCAs": [k8s.crt]}
    if given.kubeprism_port:
        yield "KubePrismConfig", {"port": given.kubeprism_port}


def _control_plane(given: GenerateInput, endpoint: go_url.URL, kubernetes: str) -> Iterator[tuple[str, dict[str, Any]]]:
    bundle = given.bundle
    yield "KubeAggregatorCAConfig", {"issuingCA": {"cert": bundle.aggregator.crt, "key": bundle.aggregator.key}}
    yield "KubeAdmissionControlConfig", {"name": "PodSecurity", "configuration": pod_security()}
    yield "KubeAuditPolicyConfig", {"configuration": audit_policy()}
    yield "KubeAuthenticationConfig", {"configuration": authentication()}
    yield "KubeAuthorizerConfig", {"name": "node", "type": "Node"}
    yield "KubeAuthorizerConfig", {"name": "rbac", "type": "RBAC"}
    # Talos writes an AES-CBC key of an old bundle as a secretbox key under the name key1, too; see render.py for what this product does
    providers = [
        {"secretbox": {"keys": [{"name": name, "secret": secret}]}}
        for name, secret in (("key2", bundle.secretbox), ("key1", bundle.aescbc)) if secret
    ]
    yield "KubeEtcdEncryptionConfig", {"config": {"resources": [{"providers": providers, "resources": ["secrets"]}]}}
    yield "KubeServiceAccountConfig", {"issuer": {"privateKey": bundle.service_account.key, "issuerURL": endpoint}}
    api_server: dict[str, Any] = {"image": f"registry.k8s.io/kube-apiserver:v{kubernetes}"}
    if given.local_api_server_port:
        api_server["apiPort"] = given.local_api_server_port
    if given.additional_sans:
        api_server["certExtraSANs"] = list(given.additional_sans)
    yield "KubeAPIServerConfig", api_server
    yield "KubeControllerManagerConfig", {"image": f"registry.k8s.io/kube-controller-manager:v{kubernetes}"}
    yield "KubeSchedulerConfig", {"image": f"registry.k8s.io/kube-scheduler:v{kubernetes}"}
    yield "KubeProxyConfig", {"image": f"registry.k8s.io/kube-proxy:v{kubernetes}"}
    if not given.custom_cni_url:
        yield "KubeFlannelCNIConfig", {"backendType": "vxlan", "backendPort": 4789}
    yield "KubeCoreDNSConfig", {"enabled": True}
    if given.custom_cni_url:
        try:
            yield "KubeExternalManifestConfig", {"name": "custom-cni", "url": go_url.parse(given.custom_cni_url)}
        except ValueError as error:
            raise ConfigProblem(problem.INVALID_INPUT, f"this is no URL: {error}", path="cni.url") from None
