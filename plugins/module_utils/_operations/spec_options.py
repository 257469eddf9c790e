# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nested options of a module as parts of a record's spec: snake case becomes the record's camel case, what was not given goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._model.identity import canonical_mac, canonical_uuid
from .._model.plan import plain
from .._model.records import Json


def said(options: Mapping[str, object]) -> dict[str, Json]:
    """What a person gave of a block of options; options that were left out are None in Ansible and are not in it."""
    return {key: plain(value) for key, value in options.items() if value is not None}


def said_list(blocks: Iterable[Mapping[str, object]]) -> tuple[Mapping[str, Json], ...]:
    """The same for a list of blocks."""
    return tuple(said(block) for block in blocks)


def camel(options: Mapping[str, object], names: Mapping[str, str]) -> dict[str, Json]:
    """The same, with the option names that the record spells otherwise."""
    return {names.get(key, key): value for key, value in said(options).items()}


def install_of(options: Mapping[str, object]) -> dict[str, Json]:
    """`spec.install` from the option `install`; empty when nothing was given."""
    block = camel(options, {"disk_selector": "diskSelector"})
    selector = block.get("diskSelector")
    if isinstance(selector, dict):
        block["diskSelector"] = {key: value if isinstance(value, str) else str(value) for key, value in selector.items()}
    return block


def text_map(options: Mapping[str, object]) -> dict[str, str]:
    """A mapping of texts, as labels are; true and false become the words that YAML has for them."""
    return {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items() if value is not None}


def identity_of(options: Mapping[str, object]) -> dict[str, Json]:
    """`spec.identity` in canonical spelling; a UUID or a MAC that is none stays as written, for the schema to refuse."""
    block = said(options)
    uuid, macs = block.get("uuid"), block.get("macs")
    if isinstance(uuid, str):
        block["uuid"] = canonical_uuid(uuid) or uuid
    if isinstance(macs, list):
        block["macs"] = list(sorted(canonical_mac(mac) or mac for mac in macs if isinstance(mac, str)))
    return block


_CLUSTER_NAMES = {
    "talos_version": "talosVersion", "kubernetes_version": "kubernetesVersion", "cert_sans": "certSANs", "drift_policy": "driftPolicy",
    "secure_boot": "secureBoot", "allow_scheduling_on_control_planes": "allowSchedulingOnControlPlanes",
}
_NETWORK_NAMES = {"pod_subnets": "podSubnets", "service_subnets": "serviceSubnets", "dns_domain": "dnsDomain"}


def cluster_settings(options: Mapping[str, object]) -> dict[str, Json]:
    """The part of a cluster's spec that the options give, by the option names of the module; a hold of none is taken away."""
    given = camel(options, _CLUSTER_NAMES)
    settings: dict[str, Json] = {}
    for key, value in given.items():
        if key == "bundle":
            settings["secretsRef"] = {"name": value}
        elif key == "control_planes":
            settings["controlPlane"] = {"count": value}
        elif key == "registry_mirrors":
            settings["registries"] = {"mirrors": value}
        elif key == "network" and isinstance(value, dict):
            settings["network"] = camel(value, _NETWORK_NAMES)
        elif key == "install" and isinstance(value, dict):
            settings["install"] = install_of(value)
        elif key == "discovery" and isinstance(value, dict):
            settings["discovery"] = said(value)
        elif key == "hold":
            settings["hold"] = None if value == "none" else value
        elif key not in ("cni", "cilium_values"):
            settings[key] = value
    cni: dict[str, Json] = {}
    if "cni" in given:
        cni["preset"] = given["cni"]
    if "cilium_values" in given:
        cni["cilium"] = {"values": given["cilium_values"]}
    if cni:
        settings["cni"] = cni
    return settings


def patch_settings(options: Mapping[str, object]) -> dict[str, Json]:
    """The part of a patch's spec that the options give; an empty selector is taken away."""
    settings = camel(options, {"cluster": "clusterRef"})
    selector = settings.pop("machine_selector", None)
    if isinstance(selector, dict):
        said_parts = said(selector)
        labels = said_parts.get("labels")
        if isinstance(labels, dict):
            said_parts["labels"] = dict(text_map(labels))
        settings["machineSelector"] = said_parts or None
    return settings
