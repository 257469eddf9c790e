# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of the document without a kind (reference: validation of the legacy document). Order and words are Talos's."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import go_net
from .kubernetes_names import wrong_annotations, wrong_labels, wrong_taints
from .validate_cluster import check_cluster
from .validate_interfaces import check_interfaces
from .verdict import Report, multi, quote

Data = Mapping[str, Any]

KUBESPAN_LEAST_MTU = 1280
PROTECTED_KUBELET_FIELDS = (
    "apiVersion", "authentication", "authorization", "cgroupRoot", "kind", "kubeletCgroups", "port", "protectKernelDefaults", "resolvConf",
    "rotateCertificates", "systemCgroups", "staticPodPath", "seccompDefault",
)
API_ROLES = ("os:admin", "os:operator", "os:reader", "os:etcd:backup", "os:image:verifier", "os:meta:writer", "os:impersonator")
_SORT_ALGORITHMS = ("v1", "v2")
_TYPES = {"init": "init", "controlplane": "controlplane", "worker": "worker", "join": "worker", "": "worker"}
_DISK_TYPES = ("", "nvme", "sd", "hdd", "ssd")
_EXTENSIONS = {
    "1.12": "https://www.talos.dev/latest/talos-guides/install/boot-assets/",
}
_EXTENSIONS_NEW = "https://docs.siderolabs.com/talos/latest/platform-specific-installations/boot-assets"


def machine_type(legacy: Data | None) -> str:
    """`init`, `controlplane`, `worker`, or "" where there is no machine or its type is unknown."""
    machine = (legacy or {}).get("machine")
    return _TYPES.get(machine.get("type") or "", "") if machine is not None else ""


def is_control_plane(legacy: Data | None) -> bool:
    return machine_type(legacy) in ("init", "controlplane")


def check_legacy(legacy: Data, version: str, mode: str, report: Report) -> None:
    """mode: `metal`, `cloud` or `container`, as in `talosctl validate`."""
    machine = legacy.get("machine")
    if machine is None:
        report.error("machine", "machine instructions are required")
        return
    if version >= "1.14":
        if machine.get("files"):
            report.warn("machine.files", ".machine.files is deprecated; use dedicated configuration documents instead")
        if machine.get("baseRuntimeSpecOverrides"):
            report.warn(
                "machine.baseRuntimeSpecOverrides",
                ".machine.baseRuntimeSpecOverrides is deprecated; use a CRIBaseRuntimeSpecConfig document instead")
    cluster = legacy.get("cluster")
    check_cluster(cluster, is_control_plane(legacy), version, report)
    install = machine.get("install")
    if mode == "metal":
        _check_install(install, version, report)
    _check_host_dns(machine, version, mode, report)
    kind = machine_type(legacy)
    given = machine.get("type") or ""
    if kind and kind != given:
        report.warn("machine.type", f"use {quote(kind)} instead of {quote(given)} for machine type")
    _check_machine_ca(machine, cluster or {}, kind, version, report)
    network = machine.get("network")
    if network is not None:
        check_interfaces(network.get("interfaces") or [], report)
        kubespan = network.get("kubespan") or {}
        if kubespan.get("enabled") and 0 < (kubespan.get("mtu") or 0) < KUBESPAN_LEAST_MTU:
            report.error("machine.network.kubespan.mtu", f"kubespan link MTU must be at least {KUBESPAN_LEAST_MTU}")
    _check_disks(machine, report)
    _check_kubelet(machine.get("kubelet"), report)
    _check_disk_encryption(machine.get("systemDiskEncryption") or {}, report)
    _check_kubespan((network or {}).get("kubespan") or {}, cluster or {}, version, report)
    _check_logging(machine.get("logging") or {}, report)
    _check_extensions(install or {}, version, report)
    _check_rest(legacy, machine, kind, report)


def _check_install(install: Data | None, version: str, report: Report) -> None:
    if install is None:
        if version < "1.14":
            report.error("machine.install", 'install instructions are required in "metal" mode')
        return
    selector = install.get("diskSelector")
    wrong = _wrong_selector(selector) if selector is not None else ""
    if wrong:
        report.error("machine.install.diskSelector", f"install disk selector is invalid: {wrong}")
    if not install.get("disk") and (selector is None or wrong):
        report.error("machine.install.disk", "either install disk or diskSelector should be defined")
    if install.get("extraKernelArgs") and install.get("grubUseUKICmdline"):
        report.error("machine.install.extraKernelArgs", "install.extraKernelArgs and install.grubUseUKICmdline can't be used together")


def _wrong_selector(selector: Data) -> str:
    if selector.get("name"):
        return "selector on name is not supported"
    kind = selector.get("type") or ""
    return "" if kind in _DISK_TYPES else f"unsupported disk type {quote(kind)}"


def _check_host_dns(machine: Data, version: str, mode: str, report: Report) -> None:
    host_dns = (machine.get("features") or {}).get("hostDNS")
    enabled, forward = bool((host_dns or {}).get("enabled")), bool((host_dns or {}).get("forwardKubeDNSToHost"))
    if version < "1.14" and mode == "container":
        if not enabled:
            report.error("machine.features.hostDNS", "feature HostDNS should be enabled in container mode (.machine.features.hostDNS.enabled)")
        if not forward:
            report.error(
                "machine.features.hostDNS",
                "feature HostDNS should forward kube-dns to host in container mode (.machine.features.hostDNS.forwardKubeDNSToHost)")
    if version > "1.12" and forward and not enabled:
        report.error(
            "machine.features.hostDNS", "feature hostDNS.forwardKubeDNSToHost requires hostDNS.enabled to be true (.machine.features.hostDNS)")


def _check_machine_ca(machine: Data, cluster: Data, kind: str, version: str, report: Report) -> None:
    authority = machine.get("ca")
    if authority is None and not machine.get("acceptedCAs"):
        report.error("machine.ca", "issuing CA or some accepted CAs are required (.machine.ca, machine.acceptedCAs)")
    if kind in ("init", "controlplane"):
        if version < "1.14" or cluster.get("network") is not None:
            _check_cni((cluster.get("network") or {}).get("cni"), version, report)
        if authority is None:
            report.error("machine.ca", "issuing CA is required (.machine.ca)")
        elif not authority.get("key"):
            report.error("machine.ca.key", "issuing CA key is required for controlplane nodes (.machine.ca.key)")
    elif kind == "worker":
        for index, device in enumerate((machine.get("network") or {}).get("interfaces") or []):
            for holder in (device, *(device.get("vlans") or [])):
                if holder.get("vip") is not None:
                    report.error(f"machine.network.interfaces.{index}.vip", "virtual (shared) IP is not allowed on non-controlplane nodes")
        if authority is not None:
            if authority.get("key"):
                report.error("machine.ca.key", "issuing Talos API CA key is not allowed on non-controlplane nodes (.machine.ca)")
            if not authority.get("crt") and not machine.get("acceptedCAs"):
                report.error(
                    "machine.ca.crt", "trusted CA certificates are required on non-controlplane nodes (.machine.ca.crt, .machine.acceptedCAs)")
        if (cluster.get("ca") or {}).get("key"):
            report.error("cluster.ca.key", "issuing Kubernetes API CA key is not allowed on non-controlplane nodes (.cluster.ca)")
    else:
        report.error("machine.type", f"unknown machine type {quote(machine.get('type') or '')}")


def _check_cni(cni: Data | None, version: str, report: Report) -> None:
    name = (cni or {}).get("name") or "" if cni is not None else "flannel"
    urls = (cni or {}).get("urls") or []
    flannel = (cni or {}).get("flannel") or {}
    path = "cluster.network.cni"
    if name == "flannel":
        if urls:
            report.error(f"{path}.urls", f'"urls" field should be empty for {quote(name)} CNI')
        return
    if name not in ("none", "custom"):
        report.error(f"{path}.name", 'cni name should be one of ["flannel", "custom", "none"]')
        return
    if name == "none" and urls:
        report.error(f"{path}.urls", f'"urls" field should be empty for {quote(name)} CNI')
    if name == "custom" and not urls:
        report.warn(f"{path}.urls", f'"urls" field should not be empty for {quote(name)} CNI')
    if flannel.get("extraArgs"):
        report.error(f"{path}.flannel", f'"flanneldExtraArgs" field should be empty for {quote(name)} CNI')
    if flannel.get("kubeNetworkPoliciesEnabled") and version > "1.12":
        report.error(f"{path}.flannel", f'"flannelKubeNetworkPoliciesEnabled" should not be enabled for {quote(name)} CNI')
    if name == "custom":
        for url in urls:
            wrong = go_net.wrong_endpoint(url)
            if wrong:
                report.error(f"{path}.urls", wrong)


def _check_disks(machine: Data, report: Report) -> None:
    for index, disk in enumerate(machine.get("disks") or []):
        partitions = disk.get("partitions") or []
        for position, partition in enumerate(partitions):
            if not partition.get("size") and position != len(partitions) - 1:
                report.error(
                    f"machine.disks.{index}",
                    f"partition for disk {quote(disk.get('device') or '')} is set to occupy full disk, but it's not the last partition in the list")


def _check_kubelet(kubelet: Data | None, report: Report) -> None:
    for subnet in ((kubelet or {}).get("nodeIP") or {}).get("validSubnets") or []:
        if not go_net.is_subnet_or_address(subnet):
            report.error("machine.kubelet.nodeIP.validSubnets", f"kubelet nodeIP subnet is not valid: {quote(subnet.removeprefix('!'))}")
    for field in PROTECTED_KUBELET_FIELDS:
        if field in ((kubelet or {}).get("extraConfig") or {}):
            report.error(f"machine.kubelet.extraConfig.{field}", f"kubelet configuration field {quote(field)} can't be overridden")


def _check_disk_encryption(encryption: Data, report: Report) -> None:
    for key, label in (("ephemeral", "EPHEMERAL"), ("state", "STATE")):
        partition = encryption.get(key)
        if partition is None:
            continue
        path = f"machine.systemDiskEncryption.{key}"
        if not partition.get("keys"):
            report.error(path, f"partition {quote(label)}: no encryption keys provided")
        slots: set[int] = set()
        for entry in partition.get("keys") or []:
            slot = entry.get("slot") or 0
            if slot in slots:
                report.error(path, f"partition {quote(label)}: encryption key slot {slot} is already in use")
            slots.add(slot)
            if all(entry.get(method) is None for method in ("nodeID", "static", "kms", "tpm")):
                report.error(path, f"partition {quote(label)}: encryption key at slot {slot} doesn't have the configuration parameters")


def _check_kubespan(kubespan: Data, cluster: Data, version: str, report: Report) -> None:
    if not kubespan.get("enabled"):
        return
    if version < "1.14":
        for path, value in (
            ("discovery", (cluster.get("discovery") or {}).get("enabled")), ("id", cluster.get("id")), ("secret", cluster.get("secret")),
        ):
            if not value:
                word = "enabled" if path == "discovery" else "set"
                report.error(f"cluster.{path}", f".cluster.{path} should be {word} when .machine.network.kubespan is enabled")
    filters = kubespan.get("filters") or {}
    for subnet in filters.get("endpoints") or []:
        if not go_net.is_subnet_or_address(subnet):
            report.error("machine.network.kubespan.filters.endpoints", f"KubeSpan endpoint filter is not valid: {quote(subnet.removeprefix('!'))}")
    for subnet in filters.get("excludeAdvertisedNetworks") or []:
        if not go_net.is_cidr(subnet):
            report.error(
                "machine.network.kubespan.filters.excludeAdvertisedNetworks",
                f"KubeSpan exclude advertised networks filter is not valid: {quote(subnet)}")


def _check_logging(logging: Data, report: Report) -> None:
    for index, destination in enumerate(logging.get("destinations") or []):
        path = f"machine.logging.destinations.{index}"
        endpoint = destination.get("endpoint")
        if endpoint is None:
            report.error(path, "empty logging endpoint")
        else:
            if not endpoint.host:
                report.error(path, "empty logging endpoint's host")
            if endpoint.scheme not in ("tcp", "udp"):
                report.error(path, f"unexpected logging endpoint scheme {quote(endpoint.scheme)}")
        form = destination.get("format") or ""
        if form != "json_lines":
            report.error(f"{path}.format", f"unknown logging format {quote(form)}")


def _check_extensions(install: Data, version: str, report: Report) -> None:
    seen: set[str] = set()
    for extension in install.get("extensions") or []:
        image = extension.get("image") or ""
        if image in seen:
            report.error("machine.install.extensions", f"duplicate system extension {quote(image)}")
        seen.add(image)
    if seen:
        report.warn("machine.install.extensions", f".machine.install.extensions is deprecated, please see {_EXTENSIONS.get(version, _EXTENSIONS_NEW)}")


def _check_rest(legacy: Data, machine: Data, kind: str, report: Report) -> None:
    for key, what, found in (
        ("nodeLabels", "labels", wrong_labels(machine.get("nodeLabels") or {})),
        ("nodeAnnotations", "annotations", wrong_annotations(machine.get("nodeAnnotations") or {})),
        ("nodeTaints", "taints", wrong_taints(machine.get("nodeTaints") or {})),
    ):
        if found:
            report.error(f"machine.{key}", f"invalid machine node {what}: {multi(found)}")
    features = machine.get("features") or {}
    access = features.get("kubernetesTalosAPIAccess") or {}
    if access.get("enabled"):
        path = "machine.features.kubernetesTalosAPIAccess"
        if kind not in ("init", "controlplane"):
            report.error(path, "feature Kubernetes Talos API Access can only be enabled on control plane machines")
        for role in access.get("allowedRoles") or []:
            if role not in API_ROLES:
                report.error(f"{path}.allowedRoles", f"invalid role {quote(role)} in allowed roles for Kubernetes Talos API Access")
    algorithm = features.get("nodeAddressSortAlgorithm") or ""
    if algorithm and algorithm.lower() not in _SORT_ALGORITHMS:
        report.error(
            "machine.features.nodeAddressSortAlgorithm",
            f"invalid node address sort algorithm: {algorithm} does not belong to AddressSortAlgorithm values")
    if legacy.get("persist") is False:
        report.error("persist", ".persist should be enabled")
    registries = machine.get("registries") or {}
    for section in ("config", "mirrors"):
        for host, value in (registries.get(section) or {}).items():
            if value is None:
                report.error(f"machine.registries.{section}.{host}", f"registries.{section}[{quote(host)}] is null")
