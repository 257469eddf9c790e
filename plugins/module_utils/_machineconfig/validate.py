# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of a whole configuration as `talosctl validate` does it, for the Talos version by whose schema it was read.

Not here, because only a node can tell: whether a Kubernetes image fits the Talos version (kubernetes_images.py), whether a disk is
there, and what a CEL expression means.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import validate_bgp, validate_kubernetes, validate_network, validate_runtime, validate_volumes
from .documents import Config
from .validate_conflicts import conflict
from .validate_legacy import check_legacy, is_control_plane
from .verdict import Finding, Report, Verdict, quote

Data = Mapping[str, Any]

_CHECKS = {
    **validate_network.CHECKS, **validate_bgp.CHECKS, **validate_volumes.CHECKS, **validate_kubernetes.CHECKS, **validate_runtime.CHECKS,
}


def validate(config: Config, mode: str = "metal") -> Verdict:
    """All errors and warnings. mode: `metal`, `cloud` or `container`."""
    version = config.version
    errors: list[Finding] = []
    warnings: list[Finding] = []
    legacy = config.legacy.data if config.legacy is not None else None
    if legacy is not None:
        report = Report("v1alpha1.Config")
        check_legacy(legacy, version, mode, report)
        errors.extend(report.errors)
        warnings.extend(report.warnings)
    others = [document for document in config.documents if not document.legacy]
    for document in others:
        check = _CHECKS.get(document.kind.name)
        if check is not None:
            report = Report(document.id)
            check(document.data, version, report)
            errors.extend(report.errors)
            warnings.extend(report.warnings)
    if legacy is not None:
        for document in others:
            wrong = conflict(document.kind.name, document.data, legacy, version)
            if wrong:
                errors.append(Finding("", document.id, wrong))
    if version >= "1.14":
        errors.extend(Finding("", path, message) for path, message in _whole(config, legacy, mode))
    return Verdict(tuple(errors), tuple(warnings))


def _whole(config: Config, legacy: Data | None, mode: str) -> list[tuple[str, str]]:
    """(path, message) of what concerns the configuration as a whole; 1.14 only."""
    found: list[tuple[str, str]] = []
    machine: Data = (legacy or {}).get("machine") or {}
    cluster: Data = (legacy or {}).get("cluster") or {}
    resolver = config.find("ResolverConfig")
    host_dns = (resolver.data.get("hostDNS") or {}) if resolver is not None else {}
    effective = host_dns if host_dns.get("enabled") else (machine.get("features") or {}).get("hostDNS")
    if mode == "container":
        if effective is None:
            found.append(("ResolverConfig.hostDNS", "hostDNS config is required in container mode"))
        else:
            if not effective.get("enabled"):
                found.append(("ResolverConfig.hostDNS", "hostDNS must be enabled in container mode"))
            if not effective.get("forwardKubeDNSToHost"):
                found.append(("ResolverConfig.hostDNS", "forwardKubeDNSToHost must be enabled in container mode"))
    servers = (resolver.data.get("nameservers") or []) if resolver is not None else []
    if any(server.get("protocol") for server in servers) and not (effective or {}).get("enabled"):
        found.append(("ResolverConfig.nameservers", "hostDNS must be enabled when using non-default DNS protocols"))
    found.extend(_discovery(config, cluster))
    found.extend(_containers(config))
    found.extend(_kubespan(config, machine, cluster))
    if is_control_plane(legacy):
        has_ca = config.find("KubeAPIServerCAConfig") is not None or cluster.get("ca") is not None or cluster.get("acceptedCAs") is not None
        encrypted = cluster.get("secretboxEncryptionSecret") or cluster.get("aescbcEncryptionSecret")
        if has_ca and not encrypted and config.find("KubeEtcdEncryptionConfig") is None:
            found.append(("KubeEtcdEncryptionConfig", "etcd encryption config is required for control plane machines running kube-apiserver"))
    else:
        kinds = sorted({document.kind.name for document in config.documents if document.kind.controlplane_only})
        if kinds:
            found.append((kinds[0], f"the following document kinds are only allowed on control plane machines: [{' '.join(kinds)}]"))
    return found


def _legacy_discovery(cluster: Data) -> bool:
    discovery = cluster.get("discovery") or {}
    return bool(discovery.get("enabled")) and not ((discovery.get("registries") or {}).get("service") or {}).get("disabled")


def _discovery(config: Config, cluster: Data) -> list[tuple[str, str]]:
    if not _legacy_discovery(cluster) and not config.all("DiscoveryServiceConfig"):
        return []
    document = config.find("DiscoveryIdentityConfig")
    legacy = bool(cluster.get("id") or cluster.get("secret"))
    identity = cluster.get("id") if legacy else document.data.get("clusterID") if document is not None else None
    secret = cluster.get("secret") if legacy else document.data.get("clusterSecret") if document is not None else None
    words = "should be set when cluster discovery (DiscoveryServiceConfig) is enabled"
    found = []
    if not identity:
        found.append(("DiscoveryIdentityConfig.clusterID", f"cluster ID (.cluster.id or DiscoveryIdentityConfig) {words}"))
    if not secret:
        found.append(("DiscoveryIdentityConfig.clusterSecret", f"cluster secret (.cluster.secret or DiscoveryIdentityConfig) {words}"))
    return found


def _kubespan(config: Config, machine: Data, cluster: Data) -> list[tuple[str, str]]:
    document = config.find("KubeSpanConfig")
    kubespan = document.data if document is not None else (machine.get("network") or {}).get("kubespan") or {}
    if kubespan.get("enabled") and not _legacy_discovery(cluster) and not config.all("DiscoveryServiceConfig"):
        return [("KubeSpanConfig", "KubeSpan requires cluster discovery to be enabled")]
    return []


def _containers(config: Config) -> list[tuple[str, str]]:
    """Dependencies among containers: they exist and form no circle."""
    edges = {document.name: (document.data.get("dependsOn") or {}).get("containers") or [] for document in config.all("ContainerConfig")}
    found = [
        ("ContainerConfig.dependsOn", f"container {quote(name)} depends on container {quote(other)}, which is not configured")
        for name, others in edges.items() for other in others if other not in edges
    ]
    cycles: set[str] = set()
    done: set[str] = set()

    def visit(name: str, stack: list[str]) -> None:
        if name in stack:
            cycles.add(" -> ".join([*stack[stack.index(name):], name]))
        elif name not in done:
            for other in edges[name]:
                if other in edges:
                    visit(other, [*stack, name])
            done.add(name)

    for name in sorted(edges):
        visit(name, [])
    if cycles:
        found.append(("ContainerConfig.dependsOn", f"container dependsOn cycle detected: {', '.join(sorted(cycles))}"))
    return found
