# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a document may not have beside it in the legacy document (reference: the conflicts, each with Talos's words)."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import go_net
from .verdict import quote

Data = Mapping[str, Any]

_REMOVE = "Please remove it and use only the new {} document to avoid conflicts"


def conflict(kind: str, data: Data, legacy: Data, version: str) -> str:
    """"" or Talos's words for what stands in both. data: of the document."""
    check = _CONFLICTS.get(kind)
    return check(data, legacy.get("machine") or {}, legacy.get("cluster") or {}, version) if check is not None else ""


def _hostname(data: Data, machine: Data, cluster: Data, version: str) -> str:
    if (machine.get("network") or {}).get("hostname"):
        return "static hostname is already set in v1alpha1 config"
    return "stable hostname is already set in v1alpha1 config" if (machine.get("features") or {}).get("stableHostname") else ""


def _resolver(data: Data, machine: Data, cluster: Data, version: str) -> str:
    network = machine.get("network") or {}
    if network.get("searchDomains") is not None:
        return ".machine.network.searchDomains is already set in v1alpha1 config"
    if any(go_net.is_address(server) for server in network.get("nameservers") or []):
        return ".machine.network.nameservers is already set in v1alpha1 config"
    if network.get("disableSearchDomain"):
        return ".machine.network.disableSearchDomain is already set in v1alpha1 config"
    if version >= "1.14" and data.get("hostDNS") and (machine.get("features") or {}).get("hostDNS") is not None:
        return ".machine.features.hostDNS is already set in v1alpha1 config"
    return ""


def _time(data: Data, machine: Data, cluster: Data, version: str) -> str:
    time = machine.get("time") or {}
    for key, words in (("disabled", "time sync cannot be disabled"), ("servers", "time servers cannot be specified"),
                       ("bootTimeout", "boot timeout cannot be specified")):
        if time.get(key):
            return f"{words} in both v1alpha1 and new-style configuration"
    return ""


def _volume(data: Data, machine: Data, cluster: Data, version: str) -> str:
    name = data.get("name") or ""
    if name not in ("STATE", "EPHEMERAL") or not data.get("encryption"):
        return ""
    if (machine.get("systemDiskEncryption") or {}).get(name.lower()) is None:
        return ""
    return f"system disk encryption for {quote(name)} is configured in both v1alpha1.Config and VolumeConfig"


def _identity(data: Data, machine: Data, cluster: Data, version: str) -> str:
    if cluster.get("id") or cluster.get("secret"):
        return "cluster identity is already configured in .cluster.id/.cluster.secret of the v1alpha1 config"
    return ""


def _cluster(data: Data, machine: Data, cluster: Data, version: str) -> str:
    remove = _REMOVE.format("KubeClusterConfig")
    if cluster.get("clusterName"):
        return f"cluster name is already set in the v1alpha1 config (.cluster.clusterName). {remove}"
    if (cluster.get("controlPlane") or {}).get("endpoint") is not None:
        return f"cluster endpoint is already set in the v1alpha1 config (.cluster.controlPlane.endpoint). {remove}"
    return ""


def _api_server(data: Data, machine: Data, cluster: Data, version: str) -> str:
    if cluster.get("apiServer") is not None:
        return "kube-apiserver config is already set in v1alpha1 config (.cluster.apiServer)"
    if (cluster.get("controlPlane") or {}).get("localAPIServerPort"):
        return "kube-apiserver API port is already set in v1alpha1 config (.cluster.controlPlane.localAPIServerPort)"
    return ""


def _etcd_encryption(data: Data, machine: Data, cluster: Data, version: str) -> str:
    both = cluster.get("secretboxEncryptionSecret") or cluster.get("aescbcEncryptionSecret")
    return "etcd encryption config is already set in v1alpha1 config" if both else ""


def _admission(data: Data, machine: Data, cluster: Data, version: str) -> str:
    plugins = (cluster.get("apiServer") or {}).get("admissionControl")
    return "admission control plugin config is already set in v1alpha1 config" if plugins else ""


def _audit(data: Data, machine: Data, cluster: Data, version: str) -> str:
    return "audit policy config is already set in v1alpha1 config" if (cluster.get("apiServer") or {}).get("auditPolicy") else ""


def _component(key: str, name: str) -> Callable[[Data, Data, Data, str], str]:
    def check(data: Data, machine: Data, cluster: Data, version: str) -> str:
        words = f"{name} config is already set in v1alpha1 config"
        if cluster.get(key) is not None:
            return f"{words} (.cluster.{key})"
        return f"{words} (.machine.controlplane.{key})" if (machine.get("controlPlane") or {}).get(key) is not None else ""
    return check


def _node(data: Data, machine: Data, cluster: Data, version: str) -> str:
    kubelet = machine.get("kubelet") or {}
    for section, values, keys in (
        ("cluster", cluster, ("allowSchedulingOnControlPlanes", "allowSchedulingOnMasters")),
        ("machine.kubelet", kubelet, ("skipNodeRegistration", "registerWithFQDN", "nodeIP")),
        ("machine", machine, ("nodeLabels", "nodeAnnotations", "nodeTaints")),
    ):
        for key in keys:
            if values.get(key) is not None:
                return f".{section}.{key} is already set in v1alpha1 config"
    return ""


def _present(section: str, key: str, words: str) -> Callable[[Data, Data, Data, str], str]:
    """A conflict when that section of machine, machine.features, machine.network or cluster has the key at all."""
    def check(data: Data, machine: Data, cluster: Data, version: str) -> str:
        holder = {"machine": machine, "cluster": cluster}.get(section)
        if holder is None:
            holder = machine.get(section) or {}
        return words if holder.get(key) is not None else ""
    return check


_CANNOT = "can't be used with {} document, please remove it to avoid conflicts"
_CONFLICTS: dict[str, Callable[[Data, Data, Data, str], str]] = {
    "CRIBaseRuntimeSpecConfig": _present("machine", "baseRuntimeSpecOverrides", "base runtime spec overrides are already set in v1alpha1 config"),
    "DiscoveryIdentityConfig": _identity,
    "DiscoveryServiceConfig": _present(
        "cluster", "discovery", "discovery service is already configured in .cluster.discovery of the v1alpha1 config"),
    "HostnameConfig": _hostname,
    "ImageCacheConfig": _present("features", "imageCache", "image cache config is already set in v1alpha1 config"),
    "KubeAPIServerCAConfig": _present("cluster", "ca", "kube-apiserver CA is already set in v1alpha1 config (.cluster.ca)"),
    "KubeAPIServerConfig": _api_server,
    "KubeAdmissionControlConfig": _admission,
    "KubeAggregatorCAConfig": _present(
        "cluster", "aggregatorCA", "kube-apiserver aggregator CA is already set in v1alpha1 config (.cluster.aggregatorCA), "
        "please remove it and use the new KubeAggregatorCAConfig document instead"),
    "KubeAuditPolicyConfig": _audit,
    "KubeAuthorizerConfig": _admission,
    "KubeClusterConfig": _cluster,
    "KubeControllerManagerConfig": _component("controllerManager", "kube-controller-manager"),
    "KubeCoreDNSConfig": _present("cluster", "coreDNS", "CoreDNS config is already set in v1alpha1 config (.cluster.coreDNS)"),
    "KubeCredentialProviderConfig": _present(
        "machine", "kubelet", "cannot use KubeCredentialProviderConfig with legacy kubelet configuration (.machine.kubelet)"),
    "KubeEtcdEncryptionConfig": _etcd_encryption,
    "KubeFlannelCNIConfig": _present(
        "cluster", "network", f"cluster network config in v1alpha1 config (.machine.cluster.network) {_CANNOT.format('KubeFlannelCNIConfig')}"),
    "KubeNetworkConfig": _present(
        "cluster", "network",
        f"cluster network config is already set in the v1alpha1 config (.machine.cluster.network). {_REMOVE.format('KubeNetworkConfig')}"),
    "KubeNodeConfig": _node,
    "KubePrismConfig": _present(
        "features", "kubePrism", f"KubePrism config in v1alpha1 config (.machine.features.kubePrism) {_CANNOT.format('KubePrismConfig')}"),
    "KubeProxyConfig": _present(
        "cluster", "proxy", f"cluster proxy config in v1alpha1 config (.machine.cluster.proxy) {_CANNOT.format('KubeProxyConfig')}"),
    "KubeSchedulerConfig": _component("scheduler", "kube-scheduler"),
    "KubeServiceAccountConfig": _present(
        "cluster", "serviceAccount", "service account is already set in v1alpha1 config (.cluster.serviceAccount)"),
    "KubeSpanConfig": _present("network", "kubespan", "kubespan is already configured in v1alpha1 machine.network.kubespan"),
    "KubeTalosAPIAccessConfig": _present(
        "features", "kubernetesTalosAPIAccess", ".machine.features.kubernetesTalosAPIAccess is already set in v1alpha1 config"),
    "KubeletConfig": _present("machine", "kubelet", "kubelet config is already set in v1alpha1 config (.machine.kubelet)"),
    "ResolverConfig": _resolver,
    "TimeSyncConfig": _time,
    "UnattendedInstallConfig": _present("machine", "install", "UnattendedInstallConfig config is incompatible with v1alpha1 config (.machine.install)"),
    "VolumeConfig": _volume,
}
