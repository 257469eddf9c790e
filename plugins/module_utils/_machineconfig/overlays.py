# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the records say, laid over a generated and patched configuration: built-in layers and the machine's own settings.

These set values instead of merging them, so that the traps of merging (a selector erased, a list doubled) cannot hit them.
Where each field goes stands in places.py.
"""
from __future__ import annotations

from typing import Any

from . import cel, go_text, go_url, problem
from .._model.records import Json, JsonMap, dig, list_at, text_at
from .compatibility import default_installer, secure_boot_installer
from .documents import Config, Document
from .problem import ConfigProblem
from .secrets import Bundle

_LINK_BY_MAC = "net0"
_LEAST_VOLUME = "1GiB"


def invalid(path: str, what: str, hint: str = "") -> ConfigProblem:
    return ConfigProblem(problem.INVALID_INPUT, what, hint=hint, path=path)


def ensure(config: Config, kind: str, name: str = "") -> dict[str, Any]:
    """The data of a document, made at the end where there is none."""
    found = config.find(kind, name)
    if found is None:
        found = Document(config.schema.kind(kind), {"name": name} if name else {})
        config.documents.append(found)
    return found.data


def machine_section(config: Config) -> dict[str, Any]:
    """`machine` of the legacy document. Raises ConfigProblem where a patch deleted it."""
    machine = config.legacy.data.get("machine") if config.legacy is not None else None
    if machine is None:
        raise ConfigProblem(problem.PATCH_FAILED, "a patch removed 'machine', which every configuration needs", document="v1alpha1", path="machine")
    section: dict[str, Any] = machine
    return section


def installer_image(cluster: JsonMap, machine: JsonMap, secure_boot_on: bool | None) -> str:
    """The installer: the one that is named, with SecureBoot as the cluster wants it, else Talos's default for the version."""
    wish = text_at(cluster, "secureBoot") or "Preferred"
    secure = wish == "Required" or wish == "Preferred" and bool(secure_boot_on)
    named = text_at(machine, "install", "image") or text_at(cluster, "install", "image")
    return secure_boot_installer(named, secure) if named else default_installer(text_at(cluster, "talosVersion"), secure)


def install_choice(cluster: JsonMap, machine: JsonMap) -> tuple[str, dict[str, str]]:
    """(disk, selector): the machine's, else that of its system disk, else the cluster's; both empty where nobody says."""
    for holder in (machine, None, cluster):
        if holder is None:
            for disk in list_at(machine, "disks"):
                if text_at(disk, "role") == "system":
                    return "", selector_of(dig(disk, "selector"), "disks")
            continue
        disk_path, selector = text_at(holder, "install", "disk"), dig(holder, "install", "diskSelector")
        if disk_path or selector:
            return disk_path, {} if disk_path else selector_of(selector, "install.diskSelector")
    return "", {}


def selector_of(value: Json, path: str) -> dict[str, str]:
    """A disk selector of a record as texts. Raises ConfigProblem for one that would pick every disk."""
    selector = {key: str(inner) for key, inner in value.items() if inner not in (None, "")} if isinstance(value, dict) else {}
    if not selector:
        raise invalid(path, "the disk selector is empty and would pick any disk")
    return selector


def expression_of(selector: dict[str, str], path: str) -> str:
    try:
        return cel.of_selector(selector)
    except ValueError as error:
        raise invalid(path, str(error)) from None


def lay_container_network(config: Config, cluster: JsonMap) -> None:
    """cni.preset none and managed: Talos installs no network. Its own flannel (unmanaged) is what the generator gives."""
    if text_at(cluster, "cni", "preset") in ("none", "managed"):
        if config.version_of_shape == "1.14":
            config.documents = [document for document in config.documents if document.kind.name != "KubeFlannelCNIConfig"]
        else:
            cluster_section = config.legacy.data.get("cluster") if config.legacy is not None else None
            if cluster_section is not None:
                cluster_section.setdefault("network", {})["cni"] = {"name": "none"}


def lay_registries(config: Config, cluster: JsonMap) -> None:
    """What the generator does not know of mirrors: overridePath and skipFallback."""
    mirrors = dig(cluster, "registries", "mirrors")
    for host, mirror in (mirrors if isinstance(mirrors, dict) else {}).items():
        document = config.find("RegistryMirrorConfig", host)
        if document is None or not isinstance(mirror, dict):
            continue
        if mirror.get("overridePath"):
            for endpoint in document.data.get("endpoints") or []:
                endpoint["overridePath"] = True
        if isinstance(mirror.get("skipFallback"), bool):
            document.data["skipFallback"] = mirror["skipFallback"]


def lay_old_encryption_key(config: Config, bundle: Bundle, role: str) -> None:
    """A bundle of the old generation: Talos's generator would leave the key out (1.12, 1.13) or name the wrong provider (1.14)."""
    if not bundle.aescbc or bundle.secretbox or role != "controlplane":
        return
    if config.version_of_shape != "1.14":
        cluster_section = config.legacy.data.get("cluster") if config.legacy is not None else None
        if cluster_section is not None:
            cluster_section["aescbcEncryptionSecret"] = bundle.aescbc
        return
    ensure(config, "KubeEtcdEncryptionConfig")["config"] = {"resources": [{
        "resources": ["secrets"], "providers": [{"aescbc": {"keys": [{"name": "key1", "secret": bundle.aescbc}]}}, {"identity": {}}],
    }]}


def lay_hostname(config: Config, machine: JsonMap) -> None:
    hostname = text_at(machine, "hostname")
    if not hostname:
        return
    document = config.find("HostnameConfig")
    if document is not None:
        document.data.update(auto="off", hostname=hostname)
    else:
        section = machine_section(config)
        section["network"] = {**(section.get("network") or {}), "hostname": hostname}


def lay_install(config: Config, cluster: JsonMap, machine: JsonMap, image: str) -> None:
    """Disk, image and wipe as the records say them; what they do not say stays as patched."""
    disk, selector = install_choice(cluster, machine)
    wipe = dig(machine, "install", "wipe") if dig(machine, "install", "wipe") is not None else dig(cluster, "install", "wipe")
    if config.version_of_shape == "1.14":
        document = config.find("UnattendedInstallConfig")
        if not disk and not selector:
            if document is not None and isinstance(wipe, bool):
                document.data.setdefault("provisioning", {})["wipe"] = wipe
            return
        data = ensure(config, "UnattendedInstallConfig")
        made = document is None
        provisioning = data.setdefault("provisioning", {})
        provisioning["diskSelector"] = {"match": cel.disk_path(disk) if disk else expression_of(selector, "install.diskSelector")}
        provisioning["wipe"] = wipe if isinstance(wipe, bool) else provisioning.get("wipe", False)
        if _names_image(cluster, machine) or made:
            data.setdefault("installer", {})["image"] = image
        return
    section = machine_section(config)
    install = section.get("install")
    if install is None:
        if not disk and not selector and not _names_image(cluster, machine):
            return  # a patch took it away, and the records say nothing: the node was written by other means
        install = section["install"] = {"wipe": False, "grubUseUKICmdline": True, "image": image}
    if _names_image(cluster, machine):
        install["image"] = image
    if isinstance(wipe, bool):
        install["wipe"] = wipe
    if disk:
        install.pop("diskSelector", None)
        install["disk"] = disk
    elif selector:
        if selector.get("match"):
            raise invalid("install.diskSelector.match", "an expression for the install disk needs contract 1.14",
                          "Give size, model, serial or the like, or the path of the disk.")
        install.pop("disk", None)
        install["diskSelector"] = _legacy_selector(selector)


def _names_image(cluster: JsonMap, machine: JsonMap) -> bool:
    """A named image wins over patches; the default one, which the generator gives, does not."""
    return bool(text_at(machine, "install", "image") or text_at(cluster, "install", "image"))


def _legacy_selector(selector: dict[str, str]) -> dict[str, str]:
    if "size" in selector:
        try:
            go_text.parse_bytes(selector["size"].lstrip("<>= ").strip())
        except ValueError as error:
            raise invalid("install.diskSelector.size", f"this is no size: {error}") from None
    return dict(selector)


def lay_disks(config: Config, machine: JsonMap) -> None:
    """What the other disks are for."""
    counts = {"storage": 0, "userVolume": 0}
    for index, disk in enumerate(list_at(machine, "disks")):
        role, path = text_at(disk, "role"), f"disks.{index}.selector"
        if role in ("system", "unused", ""):
            continue
        match = expression_of(selector_of(dig(disk, "selector"), path), path)
        if role == "ephemeral":
            ensure(config, "VolumeConfig", "EPHEMERAL")["provisioning"] = {"diskSelector": {"match": match}, "grow": True}
            continue
        counts[role] += 1
        base, kind = ("storage", "RawVolumeConfig") if role == "storage" else ("data", "UserVolumeConfig")
        name = base if counts[role] == 1 else f"{base}-{counts[role]}"
        # the system disk would match, too, were it not left out
        ensure(config, kind, name)["provisioning"] = {
            "diskSelector": {"match": f"!system_disk && ({match})"}, "grow": True, "minSize": (_LEAST_VOLUME, False),
        }


def lay_network(config: Config, machine: JsonMap) -> None:
    """The primary link: by name or MAC, DHCP or static, with or without a VLAN."""
    primary = dig(machine, "network", "primary")
    if not isinstance(primary, dict) or not primary:
        return
    link, mac = text_at(primary, "interface"), text_at(primary, "mac")
    if link and mac:
        raise invalid("network.primary", "the primary link has an interface and a mac; it can have one of them")
    if not link and not mac:
        if primary.get("addresses") or primary.get("vlan"):
            raise invalid("network.primary", "addresses and a vlan need a link", "Give the interface or the mac of the primary link.")
        lay_nameservers(config, primary)  # every link takes part in DHCP then, as Talos does by itself
        return
    if mac:
        link = _LINK_BY_MAC
        ensure(config, "LinkAliasConfig", link)["selector"] = {"match": cel.permanent_mac(go_text.parse_mac(mac.replace("-", ":")))}
    addresses = [str(address) for address in list_at(primary, "addresses")]
    dhcp = dig(primary, "dhcp")
    if addresses and dhcp is True:
        raise invalid("network.primary", "the primary link has addresses and dhcp; it can have one of them")
    vlan = dig(primary, "vlan")
    name = link
    holder: dict[str, Any]
    if isinstance(vlan, int) and vlan:
        ensure(config, "LinkConfig", link)  # raises the link that carries the VLAN
        name = f"{link}.{vlan}"
        holder = ensure(config, "VLANConfig", name)
        holder.update(vlanID=vlan, parent=link)
    if not addresses:
        ensure(config, "DHCPv4Config", name)
    else:
        holder = ensure(config, "VLANConfig" if name != link else "LinkConfig", name)
        holder["addresses"] = [{"address": _formed(address, "network.primary.addresses", go_text.parse_prefix)} for address in addresses]
        gateway = text_at(primary, "gateway")
        if gateway:
            holder["routes"] = [{"gateway": _formed(gateway, "network.primary.gateway", go_text.parse_address)}]
        else:
            holder.pop("routes", None)
    lay_nameservers(config, primary)


def lay_nameservers(config: Config, primary: JsonMap) -> None:
    servers = [str(server) for server in list_at(primary, "nameservers")]
    if servers:
        ensure(config, "ResolverConfig")["nameservers"] = [
            {"address": _formed(server, "network.primary.nameservers", go_text.parse_address)} for server in servers]


def _formed(text: str, path: str, parse: Any) -> str:
    try:
        return str(parse(text))
    except ValueError as error:
        raise invalid(path, f"this is no address: {error}") from None


def lay_labels_and_taints(config: Config, machine: JsonMap) -> None:
    labels = dig(machine, "labels")
    values = {str(key): str(value if value is not None else "") for key, value in labels.items()} if isinstance(labels, dict) else {}
    taints = {}
    for taint in list_at(machine, "taints"):
        value, effect = text_at(taint, "value"), text_at(taint, "effect")
        taints[text_at(taint, "key")] = f"{value}:{effect}" if value else effect
    if not values and not taints:
        return
    new = config.version_of_shape == "1.14"
    section = ensure(config, "KubeNodeConfig") if new else machine_section(config)
    for added, key in ((values, "labels" if new else "nodeLabels"), (taints, "taints" if new else "nodeTaints")):
        if added:
            section[key] = {**(section.get(key) or {}), **added}


def mirrors_of(cluster: JsonMap) -> dict[str, tuple[str, ...]]:
    """The endpoints of each registry host. Raises ConfigProblem for an endpoint that is no URL."""
    mirrors = dig(cluster, "registries", "mirrors")
    result = {}
    for host, mirror in (mirrors if isinstance(mirrors, dict) else {}).items():
        endpoints = tuple(str(endpoint) for endpoint in list_at(mirror, "endpoints"))
        for endpoint in endpoints:
            try:
                go_url.parse(endpoint)
            except ValueError as error:
                raise invalid(f"registries.mirrors.{host}.endpoints", f"this is no URL: {error}") from None
        result[host] = endpoints
    return result
