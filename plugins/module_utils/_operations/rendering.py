# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rendering from records: reads bundle, cluster and patches, and lets the renderer do the rest (design section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .._decide.approved import is_approved
from .._machineconfig.bring import BroughtConfig
from .._machineconfig.named import host_name, names_a_host
from .._machineconfig.patch import Patch
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.render import PatchRecord, Rendered, RenderInput, inputs_hash, load_patches, render
from .._machineconfig.secrets import Bundle, read_bundle
from .._model.errors import TalosError
from .._model.machine import cluster_of
from .._model.observed import Observed, Present, Unknown
from .._model.ports import Store
from .._model.records import CONFIG_PATCH, Record, dig, text_at
from .record_reads import MachineView


@dataclass(frozen=True)
class _Shared:
    """What all machines of a cluster are rendered from."""

    bundle: Bundle
    patches: tuple[PatchRecord, ...]
    parsed: Mapping[str, Patch]


class Renderer:
    """Renders machines of one store. Bundles and patches are read once a run, so that a run works with one state of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shared: dict[str, _Shared] = {}
        self._known: dict[tuple[str, str, str, bool | None], Observed[Rendered]] = {}

    def machine(self, view: MachineView, secure_boot: bool | None = None, *, keep: bool = True) -> Observed[Rendered]:
        """The render of a machine, or why there is none (`RenderFailed`, `SecretsUnavailable`).

        secure_boot: how the node booted; else what its record says. keep: remember it for the next look at the same records.
        """
        secure = booted_securely(view.machine) if secure_boot is None else secure_boot
        key = (view.machine.name, view.machine.resource_version, view.cluster.resource_version if view.cluster else "", secure)
        found = self._known.get(key)
        if found is None:
            found = self._render(view, secure)
            if keep:
                self._known[key] = found
        return found

    def inputs_hash(self, view: MachineView) -> str:
        """The hash of everything that the render of a machine would be made of; '' where that cannot be told without trying."""
        try:
            return inputs_hash(self.input_of(view))
        except TalosError:
            return ""

    def input_of(self, view: MachineView, secure_boot: bool | None = None) -> RenderInput:
        """Everything that decides the bytes. Raises TalosError: RenderFailed without a cluster, and what reading the bundle raises."""
        cluster = view.cluster
        if cluster is None:
            raise TalosError("RenderFailed", f"Machine {view.machine.name} belongs to cluster {cluster_of(view.machine)}, which has no record.",
                             "Create it with talos_cluster.")
        shared = self._of_cluster(cluster)
        secure = booted_securely(view.machine) if secure_boot is None else secure_boot
        return RenderInput(cluster.name, cluster.spec, view.machine.name, view.machine.spec, shared.bundle, shared.patches, secure)

    def names_beside(self, view: MachineView) -> tuple[tuple[str, str], ...]:
        """The host names of the other approved machines whose records name none, as their renders have them: (machine, host name).

        Only patches give such a name, so without one that does nothing is rendered.
        """
        found: list[tuple[str, str]] = []
        try:
            patches = self._of_cluster(view.cluster).patches if view.cluster is not None else ()
        except TalosError:
            return ()
        naming = [patch for patch in patches if names_a_host(patch.documents)]
        for other in view.siblings if naming else ():
            if other.name == view.machine.name or not is_approved(other) or text_at(other.spec, "hostname"):
                continue
            labels = dig(other.spec, "labels")
            if not any(patch.selects(other.name, labels if isinstance(labels, dict) else {}, text_at(other.spec, "role")) for patch in naming):
                continue
            wanted = self.machine(MachineView(other, view.cluster, view.siblings))
            if isinstance(wanted, Present) and (name := host_name(wanted.value.config)):
                found.append((other.name, name))
        return tuple(found)

    def _render(self, view: MachineView, secure_boot: bool | None) -> Observed[Rendered]:
        try:
            given = self.input_of(view, secure_boot)
            return Present(render(given, self._of_cluster_named(given.cluster_name)), "the records")
        except ConfigProblem as error:
            return Unknown("RenderFailed", error.message, error.hint)
        except TalosError as error:
            return Unknown("RenderFailed" if error.reason == "RenderFailed" else "SecretsUnavailable", error.message, error.hint)

    def _of_cluster_named(self, name: str) -> Mapping[str, Patch]:
        return self._shared[name].parsed

    def _of_cluster(self, cluster: Record) -> _Shared:
        if cluster.name not in self._shared:
            bundle = bundle_of(self._store, cluster)
            patches = patches_of(self._store, cluster.name)
            self._shared[cluster.name] = _Shared(bundle, patches, _parsed(patches, text_at(cluster.spec, "talosVersion")))
        return self._shared[cluster.name]


def _parsed(patches: tuple[PatchRecord, ...], version: str) -> Mapping[str, Patch]:
    """The patches that can be read; the others fail where they are used, and hold only the machines that they select."""
    found: dict[str, Patch] = {}
    for patch in patches:
        try:
            found.update(load_patches([patch], version))
        except ConfigProblem:
            continue
    return found


def bundle_of(store: Store, cluster: Record) -> Bundle:
    """The cluster's bundle. Raises TalosError `SecretsUnavailable`, `BundleInvalid`."""
    name = text_at(cluster.spec, "secretsRef", "name")
    if not name:
        raise TalosError("SecretsUnavailable", f"The cluster {cluster.name} names no secrets bundle.",
                         "Make one with talos_secrets and name it with talos_cluster, bundle.")
    try:
        return read_bundle(store.bundle(name), source=f"bundle {name}")
    except ConfigProblem as error:
        reason = error.reason if error.reason == "MissingLibrary" else "BundleInvalid"
        raise TalosError(reason, error.message, error.hint) from None


def patches_of(store: Store, cluster: str) -> tuple[PatchRecord, ...]:
    """The patches of a cluster. Raises TalosError `RenderFailed` where one cannot be read: whom it selects is not known."""
    listing = store.list(CONFIG_PATCH)
    for broken in listing.broken:
        raise TalosError("RenderFailed", f"Patch {broken.name} cannot be read, so it is not known which machines it is for ({broken.where}): {broken.sentence}",
                         "Mend the file.")
    return tuple(PatchRecord.of(record.name, record.spec) for record in listing.records if text_at(record.spec, "clusterRef") == cluster)


def booted_securely(machine: Record) -> bool | None:
    """What was last seen of the node's SecureBoot state; None where nobody looked."""
    found = dig(machine.status, "secureBoot")
    return found if isinstance(found, bool) else None


def brought(rendered: Observed[Rendered]) -> Observed[BroughtConfig]:
    """A render as provisioning takes it, with why there is none."""
    if not isinstance(rendered, Present):
        return rendered
    return Present(rendered.value.brought(), rendered.source)
