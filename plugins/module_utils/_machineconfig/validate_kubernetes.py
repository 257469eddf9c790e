# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of the documents for Kubernetes, registries and the cluster's identity. Words are Talos's."""
from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any

from . import go_net, pem
from .masking import MASK
from .kubernetes_names import qualified_name, subdomain, wrong_annotations, wrong_labels, wrong_taints
from .validate_cluster import AUTHORIZER_TYPES, wrong_resource
from .validate_legacy import API_ROLES, PROTECTED_KUBELET_FIELDS
from .verdict import Report, multi, quote

Data = Mapping[str, Any]

_AUTHENTICATION, _AUTHORIZATION = "use KubeAuthenticationConfig", "use KubeAuthorizationConfig"
_DENIED = (
    ("anonymous-auth", _AUTHENTICATION), ("authentication-config", _AUTHENTICATION), ("authorization-config", _AUTHORIZATION),
    ("authorization-mode", _AUTHORIZATION), ("authorization-webhook-", _AUTHORIZATION), ("oidc-", _AUTHENTICATION),
)
_LEAST_HOST_BITS = 4
_MOST_MASK_DIFFERENCE = 16
_MOST_SERVICE_BITS = 20


def _resources(data: Data, report: Report) -> None:
    wrong = wrong_resource(data.get("resources") or {})
    if wrong:
        report.error("resources", wrong)


def _api_server(data: Data, version: str, report: Report) -> None:
    report.need(data.get("image"), "image", "kube-apiserver image cannot be empty")
    for prefix, advice in _DENIED:
        for argument in data.get("extraArgs") or {}:
            if argument.startswith(prefix):
                report.error(f"extraArgs.{argument}", f"kube-apiserver extra argument {quote(argument)} is not allowed: {advice}")
    _resources(data, report)


def _component(name: str) -> Callable[[Data, str, Report], None]:
    def check(data: Data, version: str, report: Report) -> None:
        if data.get("enabled") is not False:
            report.need(data.get("image"), "image", f"{name} image cannot be empty")
            _resources(data, report)
    return check


def _proxy(data: Data, version: str, report: Report) -> None:
    if data.get("enabled") is False:
        return
    report.need(data.get("image"), "image", "proxy image cannot be empty")
    mode = data.get("mode") or ""
    if mode in ("iptables", "ipvs"):
        report.warn("mode", f"proxy mode {quote(mode)} is not recommended, please switch to nftables if possible")
    elif mode not in ("", "nftables"):
        report.error("mode", f"invalid proxy mode {quote(mode)}: supported modes are iptables, ipvs and nftables")
    if data.get("extraArgs"):
        report.warn("extraArgs", "extra arguments for kube-proxy may not work as expected, please use configuration instead")
    _resources(data, report)


def _kubelet(data: Data, version: str, report: Report) -> None:
    report.need(data.get("image"), "image", "kubelet image cannot be empty")
    for field in PROTECTED_KUBELET_FIELDS:
        if field in (data.get("config") or {}):
            report.error(f"config.{field}", f"kubelet configuration field {quote(field)} can't be overridden")


def _node(data: Data, version: str, report: Report) -> None:
    for subnet in (data.get("nodeIP") or {}).get("validSubnets") or []:
        if not go_net.is_subnet_or_address(subnet):
            report.error("nodeIP.validSubnets", f"nodeIP subnet is not valid: {quote(subnet.removeprefix('!'))}")
    for key, found in (
        ("labels", wrong_labels(data.get("labels") or {})), ("annotations", wrong_annotations(data.get("annotations") or {})),
        ("taints", wrong_taints(data.get("taints") or {})),
    ):
        if found:
            report.error(key, f"invalid node {key}: {multi(found)}")


def _cluster(data: Data, version: str, report: Report) -> None:
    report.need(data.get("clusterName"), "clusterName", "clusterName must be specified")
    endpoint = data.get("endpoint")
    if endpoint is None:
        report.error("endpoint", "endpoint must be specified")
    elif go_net.wrong_endpoint(endpoint.text()):
        report.error("endpoint", f"cluster endpoint is invalid: {go_net.wrong_endpoint(endpoint.text())}")


def _network(data: Data, version: str, report: Report) -> None:
    masks = {}
    for family, limit, default in ((4, 32, 24), (6, 128, 64)):
        size = data.get(f"nodeCIDRMaskSizeIPv{family}") or 0
        masks[family] = (size or default) if size == 0 or 1 <= size <= limit else None
        if masks[family] is None:
            report.error(f"nodeCIDRMaskSizeIPv{family}", f"nodeCIDRMaskSizeIPv{family} must be between 1 and {limit}")
    pods, services = data.get("podSubnets") or [], data.get("serviceSubnets") or []
    for key, word, subnets in (("podSubnets", "pod", pods), ("serviceSubnets", "service", services)):
        wrong = _wrong_subnets(subnets, masks if word == "pod" else None)
        if wrong:
            report.error(key, f"{word} subnets: {wrong}")
    if len(pods) != len(services):
        report.error("podSubnets", "the number of pod subnets must match the number of service subnets")


def _wrong_subnets(subnets: list[str], masks: Mapping[int, int | None] | None) -> str:
    """masks: the mask of a node by family, for pod subnets; None for service subnets."""
    if not subnets:
        return "at least one subnet must be specified"
    if len(subnets) > 2:
        return "at most two subnets can be specified for dual-stack clusters"
    families = []
    for subnet in subnets:
        if not subnet:
            return "invalid subnet: invalid Prefix"
        if not go_net.masked(subnet):
            return f"invalid subnet: {subnet} is not a valid CIDR"
        network = ipaddress.ip_interface(subnet).network
        bits, length = network.prefixlen, network.max_prefixlen
        if length - bits < _LEAST_HOST_BITS:
            return f"invalid subnet: /{bits} is too small, it must be larger than /{bits - _LEAST_HOST_BITS}"
        if masks is not None:
            wrong = _wrong_pod_size(subnet, bits, masks[network.version])
        else:
            wrong = _wrong_service_size(subnet, bits, length)
        if wrong:
            return wrong
        families.append(network.version)
    return "at most one IPv4 and one IPv6 subnet can be specified for dual-stack clusters" if len(set(families)) < len(families) else ""


def _wrong_pod_size(subnet: str, bits: int, mask: int | None) -> str:
    if mask is None:
        return ""
    if bits > mask:
        return f"invalid subnet: {subnet} is smaller than the per-node pod CIDR mask size /{mask}"
    if mask - bits > _MOST_MASK_DIFFERENCE:
        return (f"invalid subnet: {subnet} is too large for the per-node pod CIDR mask size /{mask}, "
                f"the difference must be at most {_MOST_MASK_DIFFERENCE} bits")
    return ""


def _wrong_service_size(subnet: str, bits: int, length: int) -> str:
    if length - bits > _MOST_SERVICE_BITS:
        return (f"invalid subnet: {subnet} is too large, it must be at least /{length - _MOST_SERVICE_BITS} "
                f"(at most {_MOST_SERVICE_BITS} host identifier bits)")
    return ""


def _accepted(data: Data, report: Report) -> None:
    for index, authority in enumerate(data.get("acceptedCAs") or []):
        wrong = pem.wrong_pem(authority, pem.CERTIFICATE)
        if wrong:
            report.error(f"acceptedCAs.{index}", f"accepted CA #{index}: {wrong}")


def _api_server_ca(data: Data, version: str, report: Report) -> None:
    issuing = data.get("issuingCA")
    wrong = pem.wrong_pair(issuing.get("cert") or "", issuing.get("key") or "", True) if issuing is not None else ""
    if wrong:
        report.error("issuingCA", f"issuing CA: {wrong}")
    _accepted(data, report)


def _aggregator_ca(data: Data, version: str, report: Report) -> None:
    if data.get("issuingCA") is None:
        report.error("issuingCA", "issuing CA is not set")
        _accepted(data, report)
    else:
        _api_server_ca(data, version, report)


def _service_account(data: Data, version: str, report: Report) -> None:
    issuer = data.get("issuer") or {}
    key = issuer.get("privateKey") or ""
    if not key:
        report.error("issuer.privateKey", "service issuer private key is required")
    elif pem.wrong_key(key):
        report.error("issuer.privateKey", f"service issuer private key is invalid: {pem.wrong_key(key)}")
    if issuer.get("issuerURL") is None:
        report.error("issuer.issuerURL", "service issuer URL is required")


def _admission(data: Data, version: str, report: Report) -> None:
    report.need(data.get("name"), "name", "admission control plugin name is required")


def _authorizer(data: Data, version: str, report: Report) -> None:
    report.need(data.get("name"), "name", "authorizer name is required")
    kind = data.get("type") or ""
    report.need(kind, "type", "authorizer type is required")
    if kind not in AUTHORIZER_TYPES:
        report.error("type", f"authorizer type {kind} is not allowed, allowed types are [{' '.join(AUTHORIZER_TYPES)}]")
    if kind == "Webhook" and not data.get("webhook"):
        report.error("webhook", "authorizer webhook configuration is required for Webhook authorizer type")
    if kind != "Webhook" and data.get("webhook"):
        report.warn("webhook", "authorizer webhook configuration is not allowed non-Webhook authorizer types")


def _etcd_encryption(data: Data, version: str, report: Report) -> None:
    report.need(data.get("config"), "config", "etcd encryption config is required")


def _flannel(data: Data, version: str, report: Report) -> None:
    report.need(data.get("backendType"), "backendType", "flannel backend type must be specified")
    _resources(data, report)


def _manifest_name(data: Data, word: str, report: Report) -> None:
    name = data.get("name") or ""
    if not name:
        report.error("name", f"{word} name is required")
    elif subdomain(name):
        report.error("name", f"{word} name is invalid: {subdomain(name)}")


def _inline_manifest(data: Data, version: str, report: Report) -> None:
    _manifest_name(data, "manifest", report)


def _external_manifest(data: Data, version: str, report: Report) -> None:
    _manifest_name(data, "manifest", report)
    url = data.get("url")
    if url is None:
        report.error("url", "manifest URL is required")
    elif url.scheme not in ("http", "https"):
        report.error("url", f"manifest URL scheme must be http or https: {quote(url.scheme)}")


def _static_pod(data: Data, version: str, report: Report) -> None:
    _manifest_name(data, "static pod", report)
    report.need(data.get("pod"), "pod", "static pod spec is required")


def _kube_prism(data: Data, version: str, report: Report) -> None:
    port = data.get("port") or 0
    if not 1 <= port <= 65535:
        report.error("port", f"invalid port {port}: must be in range 1-65535")


def _api_access(data: Data, version: str, report: Report) -> None:
    for role in data.get("allowedRoles") or []:
        if role not in API_ROLES:
            report.error("allowedRoles", f"invalid role {quote(role)} in .allowedRoles")


def _discovery_identity(data: Data, version: str, report: Report) -> None:
    secret = data.get("clusterSecret") or ""
    if not data.get("clusterID"):
        report.error("clusterID", "clusterID is required")
    elif not secret:
        report.error("clusterSecret", "clusterSecret is required")
    else:
        # Talos quotes the secret here; it is never quoted by this product
        wrong = go_net.wrong_base64(secret)
        if wrong:
            report.error("clusterSecret", f"invalid clusterSecret: failed to decode from base64: {MASK}; {wrong}")
        else:
            length = go_net.wrong_base64(secret, 32, "%d")
            if length:
                report.error("clusterSecret", f"invalid clusterSecret: expected 32 bytes, got {length}: {MASK}")


def _discovery_service(data: Data, version: str, report: Report) -> None:
    endpoint = data.get("endpoint")
    if not data.get("name"):
        report.error("name", "name is required")
    elif endpoint is None:
        report.error("endpoint", "endpoint is required")
    elif not endpoint.scheme:
        report.error("endpoint", "endpoint scheme is required")
    elif endpoint.scheme not in ("http", "https", "grpc"):
        report.error("endpoint", "endpoint scheme must be http://, https:// or grpc://")
    elif not endpoint.hostname:
        report.error("endpoint", "endpoint host is required")


def _registry_mirror(data: Data, version: str, report: Report) -> None:
    report.need(data.get("name"), "name", "name must be specified")
    for index, endpoint in enumerate(data.get("endpoints") or []):
        url = endpoint.get("url")
        if url is None:
            report.error(f"endpoints.{index}.url", f"endpoints[{index}].url must be specified")
        elif url.scheme not in ("http", "https"):
            report.error(f"endpoints.{index}.url", f"endpoints[{index}].url has unsupported scheme: {quote(url.scheme)}")


def _registry_tls(data: Data, version: str, report: Report) -> None:
    report.need(data.get("name"), "name", "name must be specified")
    authority = data.get("ca") or ""
    if authority and not any(label == pem.CERTIFICATE and pem.is_der(content) for label, content in pem.blocks(authority)):
        report.error("ca", "ca must be a valid PEM-encoded certificate")
    identity = data.get("clientIdentity")
    if identity is None:
        return
    cert, key = identity.get("cert") or "", identity.get("key") or ""
    if version >= "1.14":
        wrong = pem.wrong_pair(cert, key, False)
        if wrong:
            report.error("clientIdentity", f"client identity: {wrong}")
        return
    if not pem.blocks(cert):
        report.error("clientIdentity.cert", "client identity certificate is invalid: failed to parse PEM block")
    if pem.wrong_key(key):
        report.error("clientIdentity.key", f"client identity key is invalid: {pem.wrong_key(key)}")


def _registry_auth(data: Data, version: str, report: Report) -> None:
    report.need(data.get("name"), "name", "name must be specified")
    user, token, auth = (bool(data.get(key)) for key in ("username", "identityToken", "auth"))
    if user and token:
        report.error("identityToken", "only one of username/password or identityToken authentication can be specified")
    if auth and (user or token):
        report.error("auth", "only one of auth, username/password or identityToken authentication can be specified")


def _cri_customization(data: Data, version: str, report: Report) -> None:
    name = data.get("name") or ""
    if qualified_name(name):
        report.error("name", f"invalid name: {qualified_name(name)}")
    if name == "customization":
        report.error("name", f"name {quote(name)} is reserved for the legacy CRI customization")


CHECKS: dict[str, Callable[[Data, str, Report], None]] = {
    "CRICustomizationConfig": _cri_customization, "DiscoveryIdentityConfig": _discovery_identity, "DiscoveryServiceConfig": _discovery_service,
    "KubeAPIServerCAConfig": _api_server_ca, "KubeAPIServerConfig": _api_server, "KubeAdmissionControlConfig": _admission,
    "KubeAggregatorCAConfig": _aggregator_ca, "KubeAuthorizerConfig": _authorizer, "KubeClusterConfig": _cluster,
    "KubeControllerManagerConfig": _component("kube-controller-manager"), "KubeEtcdEncryptionConfig": _etcd_encryption,
    "KubeExternalManifestConfig": _external_manifest, "KubeFlannelCNIConfig": _flannel, "KubeInlineManifestConfig": _inline_manifest,
    "KubeNetworkConfig": _network, "KubeNodeConfig": _node, "KubePrismConfig": _kube_prism, "KubeProxyConfig": _proxy,
    "KubeSchedulerConfig": _component("scheduler"), "KubeServiceAccountConfig": _service_account, "KubeStaticPodConfig": _static_pod,
    "KubeTalosAPIAccessConfig": _api_access, "KubeletConfig": _kubelet, "RegistryAuthConfig": _registry_auth,
    "RegistryMirrorConfig": _registry_mirror, "RegistryTLSConfig": _registry_tls,
}
