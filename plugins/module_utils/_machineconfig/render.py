# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effective configuration of a machine: bundle + cluster + built-in layers + patches + what the machine's record says.

Pure: the same inputs give the same bytes, in any process (design section 8). The layers and their order stand in places.py.
"""
from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import overlays
from .._model.records import Json, JsonMap, dig, list_at, text_at
from .bring import BroughtConfig, bring
from .contract import contract_of
from .documents import Config, arrange
from .generate import POD_SUBNET, SERVICE_SUBNET, GenerateInput, generate
from .kubernetes_images import with_images
from .patch import Patch, apply_patches, patch_of_documents
from .secrets import Bundle
from .validate import validate
from .verdict import Finding, Verdict

#: Changes when the same inputs would give other bytes, so that the hash of the inputs changes with it.
RENDERER = 2
#: Where Talos misses an install disk: in the install section, or the section as a whole.
_NO_DISK = ("machine.install.disk", "machine.install")


@dataclass(frozen=True)
class PatchRecord:
    """What a TalosConfigPatch says: name, layer (`cluster`, `machine`), priority, documents as plain data, and whom it selects."""

    name: str
    layer: str
    priority: int
    documents: tuple[Json, ...] = field(repr=False)
    names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    role: str = ""

    @classmethod
    def of(cls, name: str, spec: JsonMap) -> PatchRecord:
        """From the spec of a record."""
        labels = dig(spec, "machineSelector", "labels")
        priority = dig(spec, "priority")
        return cls(
            name=name, layer=text_at(spec, "layer") or "cluster", priority=priority if isinstance(priority, int) else 0,
            documents=list_at(spec, "documents"), names=tuple(str(one) for one in list_at(spec, "machineSelector", "names")),
            labels={key: str(value) for key, value in labels.items()} if isinstance(labels, dict) else {},
            role=text_at(spec, "machineSelector", "role"),
        )

    def selects(self, machine: str, labels: Mapping[str, object], role: str) -> bool:
        """Whether it is for that machine; an absent part of the selector selects all."""
        if self.names and machine not in self.names or self.role and self.role != role:
            return False
        return all(labels.get(key) == value for key, value in self.labels.items())

    @property
    def order(self) -> tuple[int, int, str]:
        return 0 if self.layer == "cluster" else 1, self.priority, self.name


@dataclass(frozen=True)
class RenderInput:
    """Everything that decides the bytes. cluster and machine: the specs of the records; patches: any, only those that select
    this machine are used; secure_boot_on: how the node booted, None while unknown.
    """

    cluster_name: str
    cluster: JsonMap
    machine_name: str
    machine: JsonMap
    bundle: Bundle = field(repr=False)
    patches: tuple[PatchRecord, ...] = ()
    secure_boot_on: bool | None = None

    @property
    def role(self) -> str:
        return text_at(self.machine, "role")

    def selected(self) -> tuple[PatchRecord, ...]:
        """The patches for this machine in the order in which they apply."""
        labels = dig(self.machine, "labels")
        mine = labels if isinstance(labels, dict) else {}
        return tuple(sorted(
            (patch for patch in self.patches if patch.selects(self.machine_name, mine, self.role)), key=lambda patch: patch.order))


@dataclass(frozen=True)
class Rendered:
    """A rendered configuration. text: the bytes to send, as text. sha256: of the bytes. inputs_hash: of what they were made of.

    install_missing: nothing says where to install, which is for whoever sends it to refuse (`InstallDiskUnknown`).
    """

    config: Config = field(repr=False)
    text: str = field(repr=False)
    sha256: str
    inputs_hash: str
    contract: str
    warnings: tuple[Finding, ...]
    install_missing: bool

    def brought(self) -> BroughtConfig:
        """The same as a configuration that a person brings, for whoever takes both."""
        return bring(self.text.encode())


def render(given: RenderInput, parsed: Mapping[str, Patch] | None = None) -> Rendered:
    """Renders, checks and hashes. parsed: patches that were loaded before, by name, to save work over many machines.

    Raises ConfigProblem: InvalidInput with the path in the record, whatever patching raises with the patch's name as its source, and
    RefusedByValidation.
    """
    contract = contract_of(text_at(given.cluster, "talosVersion"))
    config = _layered(given, contract, parsed or {})
    verdict, missing = _without_missing_disk(with_images(validate(config, "metal"), config))
    verdict.refuse()
    text = config.text()
    return Rendered(
        config=config, text=text, sha256=hashlib.sha256(text.encode()).hexdigest(), inputs_hash=inputs_hash(given), contract=contract,
        warnings=verdict.warnings, install_missing=missing or contract == "1.14" and config.find("UnattendedInstallConfig") is None,
    )


def load_patches(patches: Iterable[PatchRecord], talos_version: str) -> dict[str, Patch]:
    """The patches decoded once for the contract of that version. Raises ConfigProblem with the patch's name as its source."""
    contract = contract_of(talos_version)
    return {patch.name: patch_of_documents(patch.documents, contract, source=f"patch {patch.name}") for patch in patches}


def _layered(given: RenderInput, contract: str, parsed: Mapping[str, Patch]) -> Config:
    cluster, machine = given.cluster, given.machine
    if not text_at(cluster, "kubernetesVersion"):
        raise overlays.invalid("kubernetesVersion", f"cluster {given.cluster_name} names no Kubernetes version", "Set kubernetes_version with talos_cluster.")
    image = overlays.installer_image(cluster, machine, given.secure_boot_on)
    disk, selector = overlays.install_choice(cluster, machine)
    base = generate(
        GenerateInput(
            cluster_name=given.cluster_name, endpoint=text_at(cluster, "endpoint"), kubernetes_version=text_at(cluster, "kubernetesVersion"),
            install_image=image, bundle=given.bundle, install_disk=disk or ("/dev/disk" if selector else ""),
            additional_sans=tuple(str(name) for name in list_at(cluster, "certSANs")),
            dns_domain=text_at(cluster, "network", "dnsDomain") or "cluster.local",
            pod_subnets=_subnets(cluster, "podSubnets", POD_SUBNET), service_subnets=_subnets(cluster, "serviceSubnets", SERVICE_SUBNET),
            registry_mirrors=overlays.mirrors_of(cluster), allow_scheduling_on_control_planes=dig(cluster, "allowSchedulingOnControlPlanes") is True,
        ),
        given.role, contract,
    )
    overlays.lay_container_network(base, cluster)
    overlays.lay_registries(base, cluster)
    overlays.lay_old_encryption_key(base, given.bundle, given.role)
    patches = [
        parsed.get(patch.name) or patch_of_documents(patch.documents, contract, source=f"patch {patch.name}") for patch in given.selected()
    ]
    config = apply_patches(base, patches) if patches else base
    overlays.lay_hostname(config, machine)
    overlays.lay_install(config, cluster, machine, image)
    overlays.lay_disks(config, machine)
    overlays.lay_network(config, machine)
    overlays.lay_labels_and_taints(config, machine)
    config.documents = arrange(contract, config.documents).documents
    return config


def _subnets(cluster: JsonMap, key: str, default: str) -> tuple[str, ...]:
    return tuple(str(subnet) for subnet in list_at(cluster, "network", key)) or (default,)


def _without_missing_disk(verdict: Verdict) -> tuple[Verdict, bool]:
    """The verdict without the error that there is no install disk, and whether there was that error."""
    errors = tuple(error for error in verdict.errors if error.path not in _NO_DISK)
    return Verdict(errors, verdict.warnings), len(errors) != len(verdict.errors)


_CLUSTER_INPUTS = (
    "talosVersion", "kubernetesVersion", "endpoint", "network", "cni", "registries", "certSANs", "install", "secureBoot", "allowSchedulingOnControlPlanes",
)
_MACHINE_INPUTS = ("role", "hostname", "labels", "taints", "install", "disks", "network")


def inputs_hash(given: RenderInput) -> str:
    """The hash of everything that goes into the bytes, hexadecimal. Fields that change nothing are left out."""
    image = overlays.installer_image(given.cluster, given.machine, given.secure_boot_on)
    plain: dict[str, Any] = {
        "renderer": RENDERER, "name": given.cluster_name, "bundle": given.bundle.text(), "installer": image,
        "cluster": {key: given.cluster[key] for key in _CLUSTER_INPUTS if given.cluster.get(key) is not None},
        "machine": {key: given.machine[key] for key in _MACHINE_INPUTS if given.machine.get(key) is not None},
        "patches": [[patch.layer, patch.priority, patch.name, list(patch.documents)] for patch in given.selected()],
    }
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":"), default=str).encode()).hexdigest()
