# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node's own configuration says of the records: contract, cluster, machine (design section 15).

Whatever a record cannot say as the configuration has it is left out here; the patches hold it then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .._machineconfig import cel
from .._machineconfig.contract import contract_in, minor, schema_for
from .._machineconfig.documents import Config, load, understood
from .._machineconfig.named import host_name
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.schema import VERSIONS
from .._model.hardware import meaningful
from .._model.observed import Present
from .._model.records import CLUSTER, MACHINE, Json, Record
from .._model.schema import validate
from .._model.schema_cluster import CONTROL_PLANE_COUNTS
from .adoption_words import LiveNode
from .approval_case import disk_identity
from .install_disk import picked_by

#: How many faults of one configuration are told.
_FAULTS = 100
_TAG = re.compile(r".*:v?([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?)(?:@sha256:[0-9a-f]{64})?\Z", re.DOTALL)
_SELECTOR = ("match", "size", "name", "model", "serial", "modalias", "uuid", "wwid", "type", "busPath")


def section(config: Config, *path: str) -> Any:
    """A value of the legacy document, None where there is none."""
    found: Any = config.legacy.data if config.legacy is not None else None
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def document(config: Config, kind: str) -> Mapping[str, Any]:
    """The data of a document, {} where there is none or the schema does not know it."""
    found = config.find(kind) if kind in config.schema else None
    return found.data if found is not None else {}


def plain_text(value: Any) -> str:
    """A text, or a URL as text."""
    return value if isinstance(value, str) else str(value.text()) if hasattr(value, "text") else ""


def read_node(node: LiveNode, contract: str = "") -> tuple[Config, str]:
    """(configuration, contract): read by the schema of the contract that it has, which is never newer than the node.

    Raises ConfigProblem: what the schema does not know, by path, a document of a newer Talos than the contract for example.
    """
    newest = schema_for(node.facts.talos_version)
    config = load(node.text, newest)
    wanted = min(contract or _contract(config), newest, key=VERSIONS.index)
    return (config if wanted == newest else load(node.text, wanted)), wanted


def read_partly(node: LiveNode, contract: str) -> tuple[Config | None, tuple[ConfigProblem, ...]]:
    """What of a node's configuration is understood by the schema of a contract, and what is not."""
    newest = schema_for(node.facts.talos_version)
    return understood(node.text, min(contract or newest, newest, key=VERSIONS.index), _FAULTS)


def _contract(config: Config) -> str:
    """Keys in the legacy document mean a contract before the one that has documents for them, whatever other documents there are."""
    found = contract_in(config)
    if found != "1.14" or not (section(config, "cluster", "id") or section(config, "cluster", "ca")):
        return found
    return "1.13"


def role_of(config: Config) -> str:
    """`controlplane` or `worker`; the old `init` is a control plane."""
    return "controlplane" if section(config, "machine", "type") in ("controlplane", "init") else "worker"


def is_control_plane(node: LiveNode) -> bool:
    """Whether its configuration, as far as it is understood, makes it one."""
    try:
        config = read_partly(node, "")[0]
    except ConfigProblem:
        return False
    return config is not None and role_of(config) == "controlplane"


def cluster_id(config: Config) -> str:
    return str(section(config, "cluster", "id") or document(config, "DiscoveryIdentityConfig").get("clusterID") or "")


def cluster_name(config: Config) -> str:
    return str(section(config, "cluster", "clusterName") or document(config, "KubeClusterConfig").get("clusterName") or "")


def endpoint_of(config: Config) -> str:
    return plain_text(section(config, "cluster", "controlPlane", "endpoint") or document(config, "KubeClusterConfig").get("endpoint") or "")


def talos_version(contract: str, running: Iterable[str]) -> str:
    """For the cluster's record: the oldest that runs, unless the contract is older than that; then its first release stands for it."""
    oldest = min(running, key=_order)
    return f"v{oldest.removeprefix('v')}" if minor(oldest) == contract else f"v{contract}.0"


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", version.split("-", 1)[0])[:3])


def kubernetes_version(configs: Iterable[Config]) -> str:
    """The oldest Kubernetes among the control planes, by the tags of their images; '' where they name none."""
    found = []
    for config in configs:
        image = section(config, "cluster", "apiServer", "image") or document(config, "KubeAPIServerConfig").get("image") \
            or section(config, "machine", "kubelet", "image") or document(config, "KubeletConfig").get("image")
        tag = _TAG.match(str(image or ""))
        if tag is not None:
            found.append(tag.group(1))
    return f"v{min(found, key=_order)}" if found else ""


def count_for(planes: int) -> int:
    """The smallest allowed number of control planes that holds so many, the largest where none does."""
    return next((count for count in CONTROL_PLANE_COUNTS if count >= planes), CONTROL_PLANE_COUNTS[-1])


def cluster_spec(config: Config, everybody: Iterable[Config], name: str, bundle: str) -> dict[str, Json]:
    """What a control plane's configuration says of the cluster, without its versions and its count."""
    network: Mapping[str, Any] = section(config, "cluster", "network") or document(config, "KubeNetworkConfig")
    spec: dict[str, Json] = {"endpoint": endpoint_of(config), "secretsRef": {"name": bundle}}
    _keep(spec, name, "network", {
        **({"podSubnets": list(network["podSubnets"])} if network.get("podSubnets") else {}),
        **({"serviceSubnets": list(network["serviceSubnets"])} if network.get("serviceSubnets") else {}),
        **({"dnsDomain": network["dnsDomain"]} if network.get("dnsDomain") not in (None, "", "cluster.local") else {})})
    spec["cni"] = {"preset": "none" if _no_network(config) else "unmanaged"}
    names = _names(config)
    if names and all(_names(other) == names for other in everybody):
        _keep(spec, name, "certSANs", list(names))
    if section(config, "cluster", "allowSchedulingOnControlPlanes") or "KubeNodeConfig" in config.schema and _schedules(config):
        spec["allowSchedulingOnControlPlanes"] = True
    return spec


def _schedules(config: Config) -> bool:
    node = config.find("KubeNodeConfig")
    return node is not None and "node-role.kubernetes.io/control-plane" not in (node.data.get("taints") or {})


def makes_flannel(config: Config) -> bool:
    """Whether Talos makes its own network by this configuration, at each start of a control plane where it is not there."""
    return not _no_network(config) and section(config, "cluster", "network", "cni", "name") != "custom"


def _no_network(config: Config) -> bool:
    if section(config, "cluster", "network", "cni", "name") == "none":
        return True
    documents = "KubeFlannelCNIConfig" in config.schema and config.find("KubeNetworkConfig") is not None
    return documents and config.find("KubeFlannelCNIConfig") is None and role_of(config) == "controlplane"


def _names(config: Config) -> tuple[str, ...]:
    """The further names of the certificates, where Talos's and Kubernetes' API have the same ones."""
    own = tuple(str(name) for name in section(config, "machine", "certSANs") or ())
    if role_of(config) == "worker":
        return own
    api = section(config, "cluster", "apiServer", "certSANs") or document(config, "KubeAPIServerConfig").get("certExtraSANs") or ()
    return own if own == tuple(str(name) for name in api) else ()


def _keep(spec: dict[str, Json], name: str, key: str, value: Json, kind: str = CLUSTER) -> None:
    """Sets a field, where there is something to say that a record can say."""
    if not value:
        return
    wrong = validate(Record(kind, name, {**spec, key: value}), writing=False)
    if not any(problem.path[:2] == ("spec", key) for problem in wrong):
        spec[key] = value


def machine_spec(node: LiveNode, config: Config, cluster: str, name: str, endpoint: str) -> dict[str, Json]:
    """What a node's configuration and hardware say of its machine: role, host name, install settings, identity."""
    identity = meaningful(node.facts.identity)
    parts: dict[str, Json] = {"uuid": identity.uuid, "serial": identity.serial, "macs": list(identity.macs)}
    spec: dict[str, Json] = {
        "clusterRef": cluster, "identity": {key: value for key, value in parts.items() if value}, "endpoint": endpoint, "role": role_of(config)}
    if _named_by_hand(config):
        _keep(spec, name, "hostname", host_name(config), MACHINE)
    install = _install(config)
    _keep(spec, name, "install", install, MACHINE)
    if "install" not in spec and install.get("image"):
        spec["install"] = {"image": install["image"]}
    disk = _install_disk(node, config)
    if disk is not None:
        spec["approvedDisk"] = disk
    return spec


def _named_by_hand(config: Config) -> bool:
    """A name that a record's host name stands for; beside `auto` other than off it would be another document."""
    found = config.find("HostnameConfig")
    return found is None or str(found.data.get("auto") or "off") == "off"


def _install(config: Config) -> dict[str, Json]:
    found = document(config, "UnattendedInstallConfig")
    if found:
        provisioning = found.get("provisioning") or {}
        match = str((provisioning.get("diskSelector") or {}).get("match") or "")
        wipe = provisioning.get("wipe")
        path = cel.path_of(match)
        named_outright = bool(path) and cel.disk_path(path) == match
        return _without_nothing({
            "disk": path if named_outright else None, "diskSelector": {"match": match} if match and not named_outright else None,
            "image": (found.get("installer") or {}).get("image"), "wipe": True if wipe is None else wipe})
    install = section(config, "machine", "install") or {}
    selector = {key: str(value) for key, value in (install.get("diskSelector") or {}).items() if key in _SELECTOR and value}
    complete = len(selector) == len(install.get("diskSelector") or {})
    disk = install.get("disk")
    # A record names one of them; a configuration may have both, a selector laid over the generator's disk. The patch holds them then.
    both = bool(disk and install.get("diskSelector"))
    return _without_nothing({"disk": None if both else disk, "diskSelector": selector if complete and not disk else None, "image": install.get("image"),
                             "wipe": install.get("wipe") or None})


def _without_nothing(values: Mapping[str, Any]) -> dict[str, Json]:
    return {key: value for key, value in values.items() if value not in (None, "", {})}


def _install_disk(node: LiveNode, config: Config) -> Json:
    """What tells the install disk from others, where the configuration picks exactly one."""
    match = str(((document(config, "UnattendedInstallConfig").get("provisioning") or {}).get("diskSelector") or {}).get("match") or "")
    disk = str(section(config, "machine", "install", "disk") or cel.path_of(match) or "")
    fields = section(config, "machine", "install", "diskSelector") or cel.selector_of(match)
    found = picked_by(disk, fields, match or str(fields), node.facts.disks)
    return disk_identity(found.value) or None if isinstance(found, Present) else None
