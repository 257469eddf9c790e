# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of `cluster` of the document without a kind (reference: validation of the legacy document). Order and words are Talos's."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import go_net, go_url
from .kubernetes_names import dns_name
from .verdict import Report, quote

Data = Mapping[str, Any]

AUTHORIZER_TYPES = ("Node", "RBAC", "Webhook")


def check_cluster(cluster: Data | None, control_plane: bool, version: str, report: Report) -> None:
    if cluster is None:
        report.error("cluster", "cluster instructions are required")
        return
    section = cluster.get("controlPlane")
    if section is not None or version < "1.14":
        endpoint = (section or {}).get("endpoint")
        if endpoint is None:
            report.error("cluster.controlPlane.endpoint", "cluster controlplane endpoint is required")
            return
        wrong = go_net.wrong_endpoint(endpoint.text())
        if wrong:
            report.error("cluster.controlPlane.endpoint", f"invalid controlplane endpoint: {wrong}")
    domain = (cluster.get("network") or {}).get("dnsDomain") or ""
    if domain and not dns_name(domain):
        report.error("cluster.network.dnsDomain", f"{quote(domain)} is not a valid DNS name")
    _check_cloud_provider(cluster.get("externalCloudProvider") or {}, report)
    _check_etcd(cluster.get("etcd"), control_plane, report)
    if not control_plane and (cluster.get("ca") or {}).get("key"):
        report.error("cluster.ca.key", "cluster CA key is not allowed on non-controlplane nodes (.cluster.ca)")
    names: set[str] = set()
    for index, manifest in enumerate(cluster.get("inlineManifests") or []):
        name = manifest.get("name") or ""
        if not name.strip():
            report.error(f"cluster.inlineManifests.{index}.name", "inline manifest name can't be empty")
        if name in names:
            report.error(f"cluster.inlineManifests.{index}.name", f"inline manifest name {quote(name)} is duplicate")
        names.add(name)
    _check_discovery(cluster, report)
    _check_components(cluster, report)


def _check_cloud_provider(provider: Data, report: Report) -> None:
    path = "cluster.externalCloudProvider"
    if not provider.get("enabled") and provider.get("manifests"):
        report.error(path, "external cloud provider is disabled, but manifests are provided")
        return
    for url in provider.get("manifests") or []:
        wrong = go_net.wrong_endpoint(url)
        if wrong:
            report.error(f"{path}.manifests", f"invalid external cloud provider manifest url {quote(url)}: {wrong}")


def _check_etcd(etcd: Data | None, control_plane: bool, report: Report) -> None:
    if etcd is None:
        return
    if not control_plane:
        report.error("cluster.etcd", "etcd config is only allowed on control plane machines")
        return
    if etcd.get("ca") is None:
        report.error("cluster.etcd.ca", "key/cert combination should not be empty")
    advertised = etcd.get("advertisedSubnets") or []
    if etcd.get("subnet") and advertised:
        report.error("cluster.etcd.subnet", "etcd subnet can't be set when advertised subnets are set")
    for word, subnets in (
        ("advertised", advertised or ([etcd["subnet"]] if etcd.get("subnet") else [])), ("listen", etcd.get("listenSubnets") or advertised),
    ):
        for subnet in subnets:
            if not go_net.is_subnet_or_address(subnet):
                report.error(f"cluster.etcd.{word}Subnets", f"etcd {word} subnet is not valid: {quote(subnet.removeprefix('!'))}")


def _check_discovery(cluster: Data, report: Report) -> None:
    discovery = cluster.get("discovery") or {}
    service = (discovery.get("registries") or {}).get("service") or {}
    if not discovery.get("enabled") or service.get("disabled"):
        return
    endpoint = service.get("endpoint") or ""
    if endpoint:
        path = "cluster.discovery.registries.service.endpoint"
        try:
            url = go_url.parse(endpoint)
            if not url.scheme and not endpoint.startswith("/"):
                raise ValueError("invalid URI for request")
            if url.path not in ("", "/"):
                report.error(path, "cluster discovery service path should be empty")
        except ValueError as error:
            report.error(path, f"cluster discovery service registry endpoint is invalid: parse {quote(endpoint)}: {error}")
    for key in ("id", "secret"):
        report.need(cluster.get(key), f"cluster.{key}", f"cluster discovery service requires .cluster.{key}")


def _check_components(cluster: Data, report: Report) -> None:
    server = cluster.get("apiServer") or {}
    wrong = _wrong_authorization(server)
    if wrong:
        report.error("cluster.apiServer.authorizationConfig", wrong)
    else:
        _check_resources(server, "apiServer", "apiserver", report)
    _check_resources(cluster.get("controllerManager") or {}, "controllerManager", "controller-manager", report)
    _check_resources(cluster.get("scheduler") or {}, "scheduler", "scheduler", report)


def _wrong_authorization(server: Data) -> str:
    authorizers = server.get("authorizationConfig")
    if authorizers is None:
        return ""
    for flag in server.get("extraArgs") or {}:
        if flag == "authorization-mode":
            return ("authorization-mode cannot be used in conjunction with AuthorizationConfig, "
                    "use eitherr AuthorizationConfig or authorization-mode")
        if flag.startswith("authorization-webhook-"):
            return ("authorization-webhook-* flags cannot be used in conjunction with AuthorizationConfig, "
                    "use either AuthorizationConfig or authorization-webhook-* flags")
    for authorizer in authorizers:
        kind = authorizer.get("type") or ""
        wrong = (
            "authorizer type must be set" if not kind else "authorizer name must be set" if not authorizer.get("name")
            else "" if kind in AUTHORIZER_TYPES else f"authorizer type {kind} is not allowed, allowed types are [{' '.join(AUTHORIZER_TYPES)}]")
        if wrong:
            return f"apiserver authorization config validation failed: {wrong}"
    return ""


def wrong_resource(resources: Data) -> str:
    """The first resource of a pod that is neither cpu nor memory, as Talos says it; "" when there is none."""
    for section in ("requests", "limits"):
        for key in resources.get(section) or {}:
            if key not in ("cpu", "memory"):
                return f"unsupported pod resource {quote(key)}"
    return ""


def _check_resources(component: Data, key: str, name: str, report: Report) -> None:
    wrong = wrong_resource(component.get("resources") or {})
    if wrong:
        report.error(f"cluster.{key}.resources", f"{name} resource validation failed: {wrong}")
