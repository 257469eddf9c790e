# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resources of a boot: constants of the hardware once, everything else after each change."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from tests.lab.certificates import certificate_pem
from tests.lab.hardware import pretty

if TYPE_CHECKING:
    from tests.lab.boot import Boot

YAML_SPEC = (("talos.dev/yaml-spec", "1"),)
_SYSTEM_VOLUMES = ("META", "STATE", "EPHEMERAL")
_PARTITION_SIZES = {"EFI": 105906176, "META": 1048576, "STATE": 104857600, "EPHEMERAL": 500000000000}


def hardware(boot: Boot) -> None:
    """What the firmware and the kernel say, once a boot."""
    node, machine, put = boot.node, boot.node.hardware, boot.resources.put
    override = node.storage.meta.get(0x0F)
    system = {
        "manufacturer": machine.manufacturer, "productName": machine.product_name, "version": machine.product_version,
        "biosVersion": machine.bios_version, "serialnumber": machine.serial, "uuid": override.decode("utf-8", "replace") if override else machine.uuid,
        "wakeUpType": machine.wake_up_type, "skuNumber": machine.sku,
    }
    put("SystemInformations.hardware.talos.dev", "systeminformation", system)
    for index, processor in enumerate(machine.processors):
        put("Processors.hardware.talos.dev", processor.get("id", f"CPU-{index}"), {key: value for key, value in processor.items() if key != "id"})
    for index, module in enumerate(machine.memory):
        put("MemoryModules.hardware.talos.dev", f"DIMM-{index}", module)
    for link in machine.links:
        put("LinkStatuses.net.talos.dev", link["name"], {key: value for key, value in link.items() if key != "name"})
    for disk in machine.disks:
        put("Disks.block.talos.dev", disk["dev_path"].removeprefix("/dev/"), disk)
    security = {"secureBoot": machine.secure_boot, "selinuxState": machine.selinux, "fipsState": "disabled", "bootedWithUKI": machine.uki}
    put("SecurityStates.talos.dev", "securitystate", security)
    put("PlatformMetadatas.talos.dev", "platformmetadata", {"platform": machine.platform})
    put("Versions.runtime.talos.dev", "version", {"name": "Talos", "version": node.version}, owner="runtime.VersionController")
    for index, extension in enumerate(machine.extensions):
        put("ExtensionStatuses.runtime.talos.dev", extension.get("id", str(index)), {key: extension[key] for key in ("image", "metadata")})
    put("TimeStatuses.v1alpha1.talos.dev", "node", {"synced": True, "epoch": 0, "syncDisabled": False})
    listen = {"listenAddress": f"{node.address}:{node.port}", "reachableAddresses": list(node.addresses)}
    put("MaintenanceServiceConfigs.runtime.talos.dev", "maintenance", listen, owner="runtime.MaintenanceConfigController")
    if not machine.sparse:
        _not_recorded(boot)


def _not_recorded(boot: Boot) -> None:
    """What real hardware publishes and the recorded nodes did not."""
    node, machine, put = boot.node, boot.node.hardware, boot.resources.put
    put("BootIDs.runtime.talos.dev", "boot-id", {"bootID": boot.id})
    put("KernelCmdlines.runtime.talos.dev", "cmdline", {"cmdline": machine.cmdline})
    token = hashlib.sha256(machine.uuid.encode()).hexdigest()[:32]
    put("UniqueMachineTokens.runtime.talos.dev", "unique-machine-token", {"token": token})
    physical = [link for link in machine.links if link["type"] == "ether" and not link["kind"]]
    if physical:
        first = min(physical, key=lambda link: str(link["name"]))
        put("HardwareAddresses.net.talos.dev", "first", {"name": first["name"], "hardwareAddr": first["permanentAddr"] or first["hardwareAddr"]})
        for address in node.addresses:
            prefix = node.prefix(address)
            spec = {
                "address": prefix, "local": address, "linkIndex": first["index"], "linkName": first["name"],
                "family": "inet6" if ":" in address else "inet4", "scope": "global", "flags": "permanent", "priority": 0,
            }
            put("AddressStatuses.net.talos.dev", f"{first['name']}/{prefix}", spec)


def addresses(boot: Boot) -> None:
    listed = {"addresses": [boot.node.prefix(address) for address in boot.node.addresses], "sortAlgorithm": "v1"}
    for name in ("default", "current", "accumulative", "routed", "current-no-k8s", "accumulative-no-k8s", "routed-no-k8s"):
        boot.resources.put("NodeAddresses.net.talos.dev", name, listed)


def unmet_conditions(boot: Boot) -> list[dict[str, str]]:
    """The conditions of MachineStatus; only in booting and running."""
    if boot.stage not in ("booting", "running"):
        return []
    unmet: list[dict[str, str]] = []
    required = ["apid", "machined"]
    config = boot.active if boot.configured else None
    if config is not None or boot.node.minor < 14:
        required.append("kubelet")
    if config is not None and config.control_plane:
        required += ["etcd", "trustd"]
    problems = []
    for name in required:
        service = boot.services.get(name)
        if service is None or service.state != "Running":
            problems.append(f"{name} not running")
        elif service.health == "unhealthy":
            problems.append(f"{name} not healthy")
    if problems:
        unmet.append({"name": "services", "reason": ", ".join(problems)})
    if config is not None and not boot.node_known:
        unmet.append({"name": "nodeReady", "reason": f'node "{boot.hostname}" status is not available yet'})
    return unmet


def services(boot: Boot) -> None:
    """Services that run, as resources."""
    running = {name for name, service in boot.services.all.items() if service.state == "Running"}
    for name in running:
        service = boot.services.all[name]
        spec = {"running": True, "healthy": service.health == "healthy", "unknown": service.health == "unknown"}
        boot.resources.put("Services.v1alpha1.talos.dev", name, spec, owner="v1alpha1.ServiceController")
    boot.resources.keep_only("Services.v1alpha1.talos.dev", running)


def dynamic(boot: Boot) -> None:
    """Everything else that follows from the state of the node."""
    put, drop = boot.resources.put, boot.resources.drop
    node = boot.node
    addresses(boot)
    maintenance = boot.in_maintenance
    if boot.endpoint is not None:
        api = {
            "listenAddress": f"{node.address}:{node.port}", "nodeRoutingDisabled": maintenance, "readonlyRoleMode": maintenance,
            "skipVerifyingClientCert": maintenance,
        }
        put("APIServiceConfigs.runtime.talos.dev", "apid", api, owner="runtime.APIServiceConfigController")
    if boot.hostname:
        put("HostnameStatuses.net.talos.dev", "hostname", {"hostname": boot.hostname, "domainname": ""})
    else:
        drop("HostnameStatuses.net.talos.dev", "hostname")
    network = {"addressReady": True, "connectivityReady": True, "hostnameReady": True, "etcFilesReady": True}
    put("NetworkStatuses.net.talos.dev", "status", network)
    _storage(boot)
    _configuration(boot)
    _cluster(boot)
    _meta(boot)


def _meta(boot: Boot) -> None:
    if boot.node.hardware.sparse:
        return
    keys = {f"0x{key:02x}": value for key, value in boot.node.storage.meta.items()}
    for name, value in keys.items():
        boot.resources.put("MetaKeys.runtime.talos.dev", name, {"value": value.decode("utf-8", "replace")})
    boot.resources.keep_only("MetaKeys.runtime.talos.dev", set(keys))


def _storage(boot: Boot) -> None:
    resources, disk = boot.resources, boot.system_disk
    found = dict(boot.node.storage.partitions()) if disk is not None else {}
    for label in _SYSTEM_VOLUMES:
        if disk is not None and label in found:
            path = f"/dev/{partition_name(disk, found[label])}"
            spec: dict[str, Any] = {
                "phase": "ready", "type": "partition", "location": path, "mountLocation": path, "partitionIndex": found[label],
                "parentLocation": f"/dev/{disk}",
            }
        else:
            spec = {"phase": "missing", "type": "partition"}
        resources.put("VolumeStatuses.block.talos.dev", label, spec)
    extra = {label for label in found if label not in ("EFI", *_SYSTEM_VOLUMES)}
    for label in extra:
        path = f"/dev/{partition_name(disk or '', found[label])}"
        ready = {"phase": "ready", "type": "partition", "location": path, "mountLocation": path, "partitionIndex": found[label]}
        resources.put("VolumeStatuses.block.talos.dev", label, {**ready, "parentLocation": f"/dev/{disk}"})
    resources.keep_only("VolumeStatuses.block.talos.dev", extra | set(_SYSTEM_VOLUMES))
    if disk is not None:
        resources.put("SystemDisks.block.talos.dev", "system-disk", {"diskID": disk, "devPath": f"/dev/{disk}"})
    else:
        resources.drop("SystemDisks.block.talos.dev", "system-disk")
    if not boot.node.hardware.sparse:
        _volumes(boot, found)


def _volumes(boot: Boot, found: dict[str, int]) -> None:
    """DiscoveredVolumes: each disk, the partitions of the system disk, and what the machine description adds."""
    names = set()
    put, disk = boot.resources.put, boot.system_disk
    for item in boot.node.hardware.disks:
        name = item["dev_path"].removeprefix("/dev/")
        names.add(name)
        spec = {
            "dev_path": item["dev_path"], "type": "disk", "device_path": item.get("bus_path", "") or "/devices/virtual", "offset": 0, "size": item["size"],
            "pretty_size": item["pretty_size"], "sector_size": item["sector_size"], "io_size": item["io_size"], "name": "gpt" if name == disk else "",
        }
        put("DiscoveredVolumes.block.talos.dev", name, spec)
    systems = {"EFI": "", "META": "", **boot.node.storage.unreadable}
    volumes = [] if disk is None else [(disk, label, number, systems.get(label, "xfs")) for label, number in found.items()]
    volumes += [(item["disk"], item["label"], item.get("number", index + 1), item.get("name", "")) for index, item in enumerate(boot.node.hardware.volumes)]
    for parent, label, number, filesystem in volumes:
        name = partition_name(parent, number)
        names.add(name)
        size = _PARTITION_SIZES.get(label, 104857600)
        spec = {
            "dev_path": f"/dev/{name}", "type": "partition", "device_path": f"/devices/{name}", "parent": parent, "parent_dev_path": f"/dev/{parent}",
            "offset": 1048576 * number, "size": size, "pretty_size": pretty(size), "sector_size": 512, "io_size": 512, "name": filesystem,
            "partition_label": label, "partition_index": number,
        }
        put("DiscoveredVolumes.block.talos.dev", name, spec)
    boot.resources.keep_only("DiscoveredVolumes.block.talos.dev", names)


def partition_name(disk: str, number: int) -> str:
    return f"{disk}p{number}" if disk[-1:].isdigit() else f"{disk}{number}"


def _configuration(boot: Boot) -> None:
    put, drop = boot.resources.put, boot.resources.drop
    kind = boot.active.machine_type if boot.active is not None else "unknown"
    put("MachineTypes.config.talos.dev", "machine-type", kind, owner="config.MachineTypeController")
    for name, config in (("v1alpha1", boot.active), ("persistent", boot.persistent)):
        if config is not None:
            put("MachineConfigs.config.talos.dev", name, config.raw, annotations=YAML_SPEC)
        else:
            drop("MachineConfigs.config.talos.dev", name)
    if boot.install_phase is not None and boot.active is not None:
        spec = {"image": boot.active.install_image, "phase": boot.install_phase}
        put("UnattendedInstallStatuses.runtime.talos.dev", "unattended-install", spec, owner="runtime.UnattendedInstallController")
    else:
        drop("UnattendedInstallStatuses.runtime.talos.dev", "unattended-install")
    if boot.configured and boot.authority is not None:
        put("OSRootSecrets.secrets.talos.dev", "os", {"token": boot.active.token if boot.active is not None else ""}, owner="secrets.RootOSController")
        accepted = [certificate_pem(boot.authority.certificate).decode()]
        put("ApiCertificates.secrets.talos.dev", "api", {"acceptedCAs": accepted}, owner="secrets.APIController")


def _cluster(boot: Boot) -> None:
    put, drop, node = boot.resources.put, boot.resources.drop, boot.node
    if node.hardware.sparse or node.storage.state:
        put("Identities.cluster.talos.dev", "local", {"nodeId": boot.identity_id})
    config = boot.active if boot.configured else None
    if config is None:
        put("Endpoints.kubernetes.talos.dev", "discovery", {"addresses": [], "hosts": []}, owner="cluster.EndpointController")
        return
    put("Infos.cluster.talos.dev", "current", {"clusterId": config.cluster_id, "clusterName": config.cluster_name}, owner="cluster.InfoController")
    put(
        "Nodenames.kubernetes.talos.dev", "nodename", {"nodename": boot.hostname, "hostnameVersion": "1", "skipNodeRegistration": False},
        owner="k8s.NodenameController",
    )
    if boot.node_known:
        put("NodeStatuses.kubernetes.talos.dev", boot.hostname, {"nodename": boot.hostname, "nodeReady": True, "labels": {}, "annotations": {}})
    members = node.world.members(config)
    for other in members:
        mine = other["nodeId"] == boot.identity_id
        member = {key: other[key] for key in ("nodeId", "addresses", "hostname", "machineType", "operatingSystem")}
        put("Members.cluster.talos.dev", other["hostname"], member, owner="cluster.MemberController")
        owner = "cluster.LocalAffiliateController" if mine else "cluster.AffiliateMergeController"
        put("Affiliates.cluster.talos.dev", other["nodeId"], {**member, "nodename": other["hostname"]}, owner=owner, namespace="cluster")
    boot.resources.keep_only("Members.cluster.talos.dev", {other["hostname"] for other in members})
    boot.resources.keep_only("Affiliates.cluster.talos.dev", {other["nodeId"] for other in members}, "cluster")
    planes = sorted(address for other in members if other["machineType"] == "controlplane" for address in other["addresses"])
    put("Endpoints.kubernetes.talos.dev", "discovery", {"addresses": planes, "hosts": []}, owner="cluster.EndpointController")
    if not config.control_plane:
        return
    etcd = {
        "name": boot.hostname, "advertisedAddresses": list(node.addresses[:1]), "listenPeerAddresses": list(node.addresses[:1]),
        "listenClientAddresses": list(node.addresses[:1]), "image": config.etcd_image or node.etcd_image, "extraArgs": {},
    }
    put("EtcdSpecs.etcd.talos.dev", "etcd", etcd, owner="etcd.SpecController")
    put("PKIStatuses.etcd.talos.dev", "etcd", {"ready": True, "version": "1"}, owner="etcd.PKIController")
    if boot.etcd.member_visible:
        put("EtcdMembers.etcd.talos.dev", "local", {"memberID": boot.etcd.member_hex}, owner="etcd.MemberController")
    else:
        drop("EtcdMembers.etcd.talos.dev", "local")
